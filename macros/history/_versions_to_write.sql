{#
    What to write of the versions that history_rows yielded: `rows` (a relation), `is_empty` and
    `has_surplus` (whether some rows, marked by `fold_surplus`, are of versions that a key has no
    more). `is_increment`: the table stays, `reads_increment`: only what arrived was read.

    Keys whose stored row does not tell enough are computed from bronze first; then those
    that inherit from a version that is new or ended otherwise; and, knowing what they inherit,
    those whose create left values out.
#}
{% macro _versions_to_write(table, rows, counts, columns, is_increment, reads_increment) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set read = '`' ~ columns | join('`, `') ~ '`, fold_lacks, fold_ended' -%}
    {#- what is written as it is: of an increment, the keys that go on from their stored row -#}
    {%- set arrived = 'select ' ~ read ~ ' from ' ~ rows ~ ' where '
        ~ ('not fold_replays' if reads_increment else not is_increment) -%}
    {#- what is compared with the stored rows first: of a complete snapshot, all keys -#}
    {%- set replayed = [rows] if is_increment and not reads_increment else [] -%}
    {%- set keys = replayed | list -%}
    {%- if counts['replays'] -%}
        {%- do keys.append(cdc_lakehouse.scratch_rows(
            'keys', 'select distinct ' ~ key ~ ' from ' ~ rows ~ ' where fold_replays'
        )) -%}
        {%- do replayed.append(cdc_lakehouse._replayed_versions('replayed', table, keys[0], true)) -%}
    {%- endif -%}
    {%- if is_increment and table['carried'] and (keys or counts['ended']) -%}
        {%- set waiting = cdc_lakehouse._waiting_keys(table, arrived, replayed, keys) -%}
        {%- if waiting -%}
            {%- do keys.append(waiting) -%}
            {%- do replayed.append(cdc_lakehouse._replayed_versions('waiting', table, waiting, true)) -%}
            {%- set arrived -%}
                select versions.* from ({{ arrived }}) as versions
                left anti join {{ waiting }} as waiting
                    on versions.{{ key }} = waiting.{{ key }}
            {%- endset -%}
        {%- endif -%}
    {%- endif -%}
    {%- set versions = [arrived] -%}
    {%- for relation in replayed -%}
        {%- do versions.append('select ' ~ read ~ ' from ' ~ relation) -%}
    {%- endfor -%}
    {%- set versions = '(' ~ versions | join(' union all ') ~ ')' -%}
    {%- set lacking = none -%}
    {%- if counts['lacking'] or (replayed and table['carried'] and run_query(
        'select 1 from ' ~ versions ~ ' where fold_lacks is not null limit 1'
    ).rows) -%}
        {%- set lacking = cdc_lakehouse.scratch_rows(
            'lacking', 'select distinct ' ~ key ~ ' from ' ~ versions ~ ' where fold_lacks is not null'
        ) -%}
        {%- set stored -%}
            (
                select
                    target.`{{ columns | join('`, target.`') }}`,
                    cast(null as array<string>) as fold_lacks, false as fold_ended
                from {{ this }} as target
                {%- for relation in keys %}
                left anti join {{ relation }} as keys_{{ loop.index }}
                    on target.{{ key }} = keys_{{ loop.index }}.{{ key }}
                {%- endfor %}
            )
        {%- endset -%}
        {%- set inherited = cdc_lakehouse._inherited_values(table, versions, stored if is_increment) -%}
        {%- do replayed.append(cdc_lakehouse._replayed_versions(
            'inheriting', table, lacking, is_increment, inherited
        )) -%}
    {%- endif -%}
    {%- if not replayed -%}
        {{ return({'rows': rows, 'is_empty': counts['rows'] == 0, 'has_surplus': false}) }}
    {%- endif -%}

    {%- set without_lacking -%}
        {%- if lacking %}
        left anti join {{ lacking }} as lacking
            on versions.{{ key }} = lacking.{{ key }}
        {%- endif %}
    {%- endset -%}
    {%- set again = [] -%}
    {%- for relation in replayed -%}
        {%- do again.append(
            'select ' ~ read ~ ' from ' ~ relation ~ ' as versions'
            ~ (without_lacking if not (lacking and loop.last))
        ) -%}
    {%- endfor -%}
    {%- set again = again | join(' union all ') -%}
    {%- set compared = columns | reject('equalto', 'ingest_batch') | list -%}
    {%- set query -%}
        with
        again as (
            {{ again }}
        )

        select `{{ columns | join('`, `') }}`, false as fold_surplus
        from ({{ arrived }}) as versions {{ without_lacking }}
        union all
        {%- if not is_increment %}
        select `{{ columns | join('`, `') }}`, false as fold_surplus
        from again
        {%- else %}
        select again.`{{ columns | join('`, again.`') }}`, false as fold_surplus
        from again
        left join {{ this }} as stored
            on again.history_id = stored.history_id
        where
            not struct(again.`{{ compared | join('`, again.`') }}`)
            <=> struct(stored.`{{ compared | join('`, stored.`') }}`)
        union all
        select stored.`{{ columns | join('`, stored.`') }}`, true as fold_surplus
        from {{ this }} as stored
        inner join (
            select {{ key }}, max(version_number) as version_number from again group by {{ key }}
        ) as last_version
            on stored.{{ key }} = last_version.{{ key }}
        where stored.version_number > last_version.version_number
        {%- endif %}
    {%- endset -%}
    {%- set settled = cdc_lakehouse.scratch_rows('settled', query) -%}
    {%- set counted = run_query('select count(*), count_if(fold_surplus) from ' ~ settled).rows[0] -%}
    {{ return({'rows': settled, 'is_empty': counted[0] == 0, 'has_surplus': counted[1] > 0}) }}
{%- endmacro %}
