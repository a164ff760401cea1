{#
    What to write of the rows that folded_rows yielded: `rows` (a relation), `is_empty`, and
    `kept` (whether some values are the stored row's). Keys whose versions do not tell are
    replayed first, and with them the rows that a key change began and that had waited for a
    delete or a late event of this increment.
#}
{% macro _rows_to_write(table, rows, counts, columns, is_increment) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set keys = ['select ' ~ key ~ ' from ' ~ rows ~ ' where fold_replays'] if counts[1] else [] -%}
    {%- set conditions = [] -%}
    {%- for condition, named in [('', counts[3]), ('not entry.is_known and ', counts[4])]
        if table['carried'] and named is not none and cdc_lakehouse.progress(this).get('carries') != 'false' -%}
        {%- do conditions.append(
            condition ~ "named_struct('epoch', entry.place.source_epoch, 'position', entry.place.position) >= "
            ~ cdc_lakehouse.point(*cdc_lakehouse._points([named])[0])
        ) -%}
    {%- endfor -%}
    {%- if conditions -%}
        {%- set waiting -%}
            select {{ key }} from {{ this }}
            where exists(
                carried_columns,
                entry -> entry.place.op = 'c' and ({{ conditions | join(' or ') }})
            )
        {%- endset -%}
        {%- if run_query(waiting ~ ' limit 1').rows -%}{%- do keys.append(waiting) -%}{%- endif -%}
    {%- endif -%}
    {%- if not keys -%}
        {{ return({
            'rows': '(select * from ' ~ rows ~ ' where fold_changed)' if is_increment else rows,
            'is_empty': counts[0] == 0, 'kept': is_increment and counts[2] > 0
        }) }}
    {%- endif -%}
    {%- set replayed_keys = cdc_lakehouse.scratch_rows(
        'replayed_keys', 'select distinct ' ~ key ~ ' from (' ~ keys | join(' union all ') ~ ')'
    ) -%}
    {%- set replayed = cdc_lakehouse.replayed_rows(table, replayed_keys) -%}
    {%- set compared = columns | reject('in', ['ingested_at', 'ingest_batch']) | list -%}
    {%- set query -%}
        select rows.`{{ columns | join('`, rows.`') }}`
            {{- ', rows.fold_kept' if is_increment }}
        from {{ rows }} as rows
        left anti join {{ replayed_keys }} as keys
            on rows.{{ key }} = keys.{{ key }}
        {{ 'where rows.fold_changed' if is_increment }}
        union all
        select replayed.`{{ columns | join('`, replayed.`') }}`
            {{- ', array() as fold_kept' if is_increment }}
        from {{ replayed }} as replayed
        {%- if is_increment %}
        left join {{ this }} as stored
            on replayed.{{ key }} = stored.{{ key }}
        where
            not struct(replayed.`{{ compared | join('`, replayed.`') }}`)
            <=> struct(stored.`{{ compared | join('`, stored.`') }}`)
        {%- endif %}
    {%- endset -%}
    {%- set settled = cdc_lakehouse.scratch_rows('settled', query) -%}
    {%- set found = run_query('select 1 from ' ~ settled ~ ' limit 1').rows -%}
    {{ return({'rows': settled, 'is_empty': not found, 'kept': is_increment and counts[2] > 0}) }}
{%- endmacro %}
