{# What to write of the rows that a model yielded: a relation, and what kind of statement they need. #}
{% macro _settled_rows(table, rows, found, columns) -%}
    {%- set key, unique_key = '`' ~ table['key'] ~ '`', config.get('unique_key') -%}
    {%- set is_complete = table['is_kept'] and not table['is_increment'] -%}
    {%- set carries = table['unchanged'] and (found['lacking'] or cdc_lakehouse.stored_table(this)['recorded'].get('carries') != 'false') -%}
    {%- set wanted = ['select ' ~ key ~ ' from ' ~ rows ~ ' where __cdc_reason is not null'] if found['reasons'] else [] -%}
    {%- if table['is_kept'] and carries and found['past'] -%}
        {%- set past = "named_struct('source_epoch', {}, 'source_position', '{}')".format(*found['past'].split('@')) -%}
        {%- set inherited = 'cdc_state.inherited' if table['is_history'] else "transform(filter(carried_columns, entry -> "
            ~ "entry.sequence.op = 'c'), entry -> struct(entry.sequence.source_epoch, entry.sequence.position as source_position))" -%}
        {%- set dependents = 'select ' ~ key ~ ' from ' ~ this ~ ' where array_max(' ~ inherited ~ ') >= ' ~ past -%}
        {%- if run_query(dependents ~ ' limit 1').rows -%}{%- do wanted.append(dependents) -%}{%- endif -%}
    {%- endif -%}
    {%- set keys = none -%}
    {%- if wanted -%}
        {%- set keys = cdc_lakehouse.scratch_rows('keys', 'select distinct ' ~ key ~ ' from (' ~ wanted | join(' union all ') ~ ')') -%}
        {%- if carries -%}{%- set keys = cdc_lakehouse._with_previous_keys(table, keys) -%}{%- endif -%}
        {%- set of_keys -%}
            left semi join (select {{ key }} as wanted_key from {{ keys }} union all select null) as wanted
                on {{ cdc_lakehouse.key_value(table, has_row=false) | indent(16) }} <=> wanted.wanted_key
        {%- endset -%}
        {%- set events = [this.schema, this.identifier, 'events'] | join('__') -%}
        {%- do cdc_lakehouse.run_statement(create_temporary_view(events,
            'select typed.* from (' ~ cdc_lakehouse.change_events(table['bronze_relation'], table, of_keys)
            ~ ') as typed left semi join ' ~ keys ~ ' as wanted on typed.' ~ key ~ ' = wanted.' ~ key)) -%}
        {#- of these keys it is no increment: their events are all that bronze has -#}
        {%- set whole = dict(table, is_increment=false, wanted=keys) -%}
        {%- set stored = (cdc_lakehouse._stored_versions(whole) if table['is_history']
            else cdc_lakehouse._stored_rows(whole)) if table['is_kept'] else none -%}
        {%- set states = cdc_lakehouse._with_inherited(table, cdc_lakehouse.scratch_rows('states',
            cdc_lakehouse.row_states(cdc_lakehouse._run_events(events, whole), whole, stored))) -%}
        {%- set computed = cdc_lakehouse.scratch_rows('computed', (
            cdc_lakehouse._history_rows(whole, states) if table['is_history'] else cdc_lakehouse._current_rows(whole, states)
        )) -%}
    {%- elif not is_complete -%}
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
            {%- if keys %}
            select {{ names }}, array() as __cdc_kept, true as __cdc_is_compared from {{ computed }}
            union all
            {%- endif %}
            select {{ names }}, __cdc_kept, {{ is_complete | lower }} as __cdc_is_compared
            from {{ rows }} as rows
            {%- if keys %}
            left anti join {{ keys }} as keys on rows.{{ key }} = keys.{{ key }}
            {%- endif %}
            where __cdc_is_changed
        )

        select computed.`{{ columns | join('`, computed.`') }}`, __cdc_kept, false as __cdc_surplus
        from computed
        {%- if table['is_kept'] %}
        left outer join {{ this }} as stored on computed.`{{ unique_key }}` = stored.`{{ unique_key }}`
        where
            not __cdc_is_compared
            or not struct(computed.`{{ compared | join('`, computed.`') }}`) <=> struct(stored.`{{ compared | join('`, stored.`') }}`)
        {%- endif %}
        {%- if table['is_kept'] and table['is_history'] %}
        union all
        select stored.`{{ columns | join('`, stored.`') }}`, cast(array() as array<string>) as __cdc_kept, true as __cdc_surplus
        from {{ this }} as stored
        inner join (
            select {{ key }}, max(version_number) as last_number from computed where __cdc_is_compared group by {{ key }}
        ) as computed
            on stored.{{ key }} = computed.{{ key }}
        where stored.version_number > computed.last_number
        {%- endif %}
    {%- endset -%}
    {%- set settled = cdc_lakehouse.scratch_rows('settled', query) -%}
    {%- set counted = run_query('select count(*) as number, count_if(__cdc_surplus) as surplus from ' ~ settled).rows[0] -%}
    {{ return({
        'rows': settled, 'is_empty': counted['number'] == 0, 'kept': found['kept'] > 0, 'has_surplus': counted['surplus'] > 0
    }) }}
{%- endmacro %}
