{#
    How far this run reads each bronze table that a selected model reads, by its name: `upper`
    (an `ingest_batch`, 0 where it is empty) and `truncates`, by their points the batches of those
    that no model has read yet. Fixed at the start, so that all models agree while the ingest goes
    on. A table is read from where its selected readers are, or else the furthest of all: the cost
    follows what is new.

    Of the source `complete_snapshots`, where the project has it, `markers`: the tables that
    `cdc-lakehouse resync` had read, with the number of rows that each then had.
#}
{% macro run_bounds() -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.bounds', {}) -%}
    {%- if memory or not execute -%}{{ return(memory) }}{%- endif -%}
    {%- set read = ['complete_snapshots'] -%}
    {%- set read_to = {'selected': {}, 'others': {}} -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model'
        and node.config.materialized != 'staging_view' -%}
        {%- set group = 'selected' if node.unique_id in selected_resources else 'others' -%}
        {%- if group == 'selected' -%}{%- do read.extend(cdc_lakehouse._bronze_tables_of(node)) -%}{%- endif -%}
        {%- if node.config.materialized in ['cdc_merge', 'cdc_history'] -%}
            {%- set recorded = cdc_lakehouse.progress(node) -%}
            {%- for id in cdc_lakehouse._reads(node)['tables'] if id in graph.sources -%}
                {%- set name = graph.sources[id].name -%}
                {%- do read_to[group].setdefault(name, []).append(recorded.get('read_to.' ~ name, 0) | int) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set queries = [] -%}
    {%- for name, table in cdc_lakehouse.bronze_sources().items() if name in read -%}
        {%- set query -%}
            {%- if name == 'complete_snapshots' -%}
            select
                '{{ name }}', max(ingest_batch),
                to_json(sort_array(collect_set(named_struct(
                    'point', concat_ws('@', source_epoch, source_position), 'id', event_id, 'relation', '{{ table }}',
                    'table', bronze_table, 'topic', table_topic, 'rows', row_count
                ))))
            from {{ cdc_lakehouse.bronze_events(table) | indent(12) }}
            lateral view inline(array(from_json(
                coalesce(
                    get_json_object(value, '$.payload.after'), get_json_object(value, '$.after'),
                    get_json_object(value, '$.payload'), value
                ),
                'topic string, bronze_table string, row_count bigint'
            ))) as table_topic, bronze_table, row_count
            where op = 'r' and bronze_table is not null
                {#- they become text of statements #}
                and rlike(concat(table_topic, event_id), '^[A-Za-z0-9._/:-]+$')
            {%- else -%}
            {#- the quarantine has records, no events -#}
            {%- set events = cdc_lakehouse.bronze_events(table) if name != 'rejected_events' else
                '(select *, string(null) as op, int(null) as source_epoch, string(null) as source_position from '
                ~ table ~ ')' -%}
            {%- set lower = read_to['selected'][name] | min if name in read_to['selected']
                else read_to['others'].get(name, [0]) | max -%}
            select
                '{{ name }}', coalesce(max(ingest_batch), {{ lower }}),
                to_json(sort_array(collect_set(case when op = 't' then named_struct(
                    'batch', ingest_batch, 'point', concat_ws('@', source_epoch, source_position)
                ) end)))
            from {{ events | indent(12) }}
            where {{ cdc_lakehouse._arrived_between(lower, 99991231235959999) }}
            {%- endif -%}
        {%- endset -%}
        {%- do queries.append(query) -%}
    {%- endfor -%}
    {%- set bounds = {} -%}
    {%- for name, upper, found in (run_query(queries | join(' union all ')) if queries else []) -%}
        {%- set found = fromjson(found) -%}
        {%- if name != 'complete_snapshots' -%}
            {%- set truncates = {} -%}
            {%- for truncate in found -%}
                {#- where it was delivered first -#}
                {%- do truncates.setdefault(cdc_lakehouse._points([truncate['point']])[0], truncate['batch']) -%}
            {%- endfor -%}
            {%- do bounds.update({name: {'upper': upper | int, 'truncates': truncates}}) -%}
        {%- else -%}
            {%- for marker in found -%}
                {%- do marker.update({'point': cdc_lakehouse._points([marker['point']])[0]}) -%}
            {%- endfor -%}
            {%- do bounds.update({name: {'upper': upper | int, 'markers': found}}) -%}
        {%- endif -%}
    {%- endfor -%}
    {#- at once: other threads read it meanwhile -#}
    {%- do memory.update(bounds) -%}
    {{ return(memory) }}
{%- endmacro %}
