{#
    What to write of the rows that a model yielded (see _current_rows and _history_rows): `rows` (a
    relation), `is_empty`, `kept` (whether some values are the stored row's) and `has_surplus` (whether
    some rows, marked by `__cdc_surplus`, are of versions that a key has no more). `found` are counts of
    `rows`, by name.

    Keys for which there is a reason are computed from bronze and what is stored; with them the
    stored rows that inherit values from where another key's past has changed. Runs statements.
#}
{% macro _settled_rows(table, rows, found, columns, is_history) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set unique_key = config.get('unique_key') -%}
    {%- set is_kept = cdc_lakehouse.keeps_rows() -%}
    {%- set is_complete = is_kept and not cdc_lakehouse.reads_increment() -%}
    {%- set carries = table['carried'] and (
        found['lacking'] or cdc_lakehouse.progress(this).get('carries') != 'false'
    ) -%}
    {%- set wanted = ['select ' ~ key ~ ' from ' ~ rows ~ ' where __cdc_reason is not null'] if found['reasons'] else [] -%}
    {%- if is_kept and carries and found['past'] -%}
        {%- set past = cdc_lakehouse.point(*cdc_lakehouse._points([found['past']])[0]) -%}
        {%- set dependents -%}
            select {{ key }} from {{ this }}
            where
            {%- if is_history %}
                exists(
                    cdc_state.inherited,
                    entry -> named_struct('epoch', entry.source_epoch, 'position', entry.source_position) >= {{ past }}
                )
            {%- else %}
                exists(
                    carried_columns,
                    entry -> entry.place.op = 'c'
                    and named_struct('epoch', entry.place.source_epoch, 'position', entry.place.position) >= {{ past }}
                )
            {%- endif %}
        {%- endset -%}
        {%- if run_query(dependents ~ ' limit 1').rows -%}{%- do wanted.append(dependents) -%}{%- endif -%}
    {%- endif -%}
    {%- set computed = [rows] if is_complete else [] -%}
    {%- set keys = none -%}
    {%- if wanted -%}
        {%- set keys = cdc_lakehouse.scratch_rows('keys', 'select distinct ' ~ key ~ ' from (' ~ wanted | join(' union all ') ~ ')') -%}
        {%- if carries -%}{%- set keys = cdc_lakehouse._with_previous_keys(table, keys) -%}{%- endif -%}
        {%- set states = cdc_lakehouse.scratch_rows('states', cdc_lakehouse.row_states(
            cdc_lakehouse.change_history('events', table, keys), table,
            gone=cdc_lakehouse._gone_rows(table, keys) if is_kept and not is_history,
            versions=cdc_lakehouse._stored_versions(table, is_gone=true) if is_kept and is_history
        )) -%}
        {%- set inherited = cdc_lakehouse._inherited_values(table, states, is_history, is_kept) -%}
        {%- do computed.append(cdc_lakehouse.scratch_rows('computed', (
            cdc_lakehouse._history_rows(table, states, inherited) if is_history
            else cdc_lakehouse._current_rows(table, '(select * from ' ~ states ~ ' where __cdc_is_last)', inherited)
        ))) -%}
    {%- endif -%}
    {%- if not computed -%}
        {{ return({
            'rows': '(select * from ' ~ rows ~ ' where __cdc_is_changed)', 'is_empty': not found['changed'],
            'kept': found['kept'] > 0, 'has_surplus': false
        }) }}
    {%- endif -%}

    {%- set names = '`' ~ columns | join('`, `') ~ '`' -%}
    {%- set compared = columns | reject('in', ['ingested_at', 'ingest_batch']) | list -%}
    {%- set query -%}
        with
        computed as (
            {%- for relation in computed %}
            select {{ names }} from {{ relation }} as computed_{{ loop.index }}
            {%- if relation == rows and keys %}
            left anti join {{ keys }} as keys on computed_{{ loop.index }}.{{ key }} = keys.{{ key }}
            {%- endif %}
            {{ 'union all' if not loop.last }}
            {%- endfor %}
        )

        {% if not is_complete -%}
        select rows.`{{ columns | join('`, rows.`') }}`, rows.__cdc_kept, false as __cdc_surplus
        from {{ rows }} as rows
        left anti join {{ keys }} as keys
            on rows.{{ key }} = keys.{{ key }}
        where rows.__cdc_is_changed
        union all
        {% endif -%}
        select computed.`{{ columns | join('`, computed.`') }}`, cast(array() as array<string>) as __cdc_kept, false as __cdc_surplus
        from computed
        {%- if is_kept %}
        left join {{ this }} as stored
            on computed.`{{ unique_key }}` = stored.`{{ unique_key }}`
        where
            not struct(computed.`{{ compared | join('`, computed.`') }}`)
            <=> struct(stored.`{{ compared | join('`, stored.`') }}`)
        {%- endif %}
        {%- if is_kept and is_history %}
        union all
        select stored.`{{ columns | join('`, stored.`') }}`, cast(array() as array<string>) as __cdc_kept, true as __cdc_surplus
        from {{ this }} as stored
        inner join (
            select {{ key }}, max(version_number) as version_number from computed group by {{ key }}
        ) as last_version
            on stored.{{ key }} = last_version.{{ key }}
        where stored.version_number > last_version.version_number
        {%- endif %}
    {%- endset -%}
    {%- set settled = cdc_lakehouse.scratch_rows('settled', query) -%}
    {%- set counted = run_query('select count(*), count_if(__cdc_surplus) from ' ~ settled).rows[0] -%}
    {{ return({
        'rows': settled, 'is_empty': counted[0] == 0, 'kept': found['kept'] > 0, 'has_surplus': counted[1] > 0
    }) }}
{%- endmacro %}
