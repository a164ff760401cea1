{# How far this run reads each bronze table that a selected model reads, by its name. #}
{% macro run_bounds() -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.run', {}) -%}
    {%- if 'bounds' in memory or not execute -%}{{ return(memory.get('bounds', {})) }}{%- endif -%}
    {%- set read, read_to = ['complete_snapshots'], {true: {}, false: {}} -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' -%}
        {%- set is_selected, reads = node.unique_id in selected_resources, cdc_lakehouse.reads_of(node) -%}
        {%- do read.extend(reads['bronze'] if is_selected and node.config.materialized != 'staging_view' else []) -%}
        {%- for id in (reads['tables'] if node.config.materialized in ['cdc_merge', 'cdc_history'] else [])
            if id in graph.sources -%}
            {%- set name = graph.sources[id].name -%}
            {%- set batch = cdc_lakehouse.stored_table(node)['recorded'].get('read_to.' ~ name, 0) | int -%}
            {%- do read_to[is_selected].setdefault(name, []).append(batch) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set sources, queries = cdc_lakehouse.bronze_sources(), [] -%}
    {%- for name, table in sources.items() if name in read -%}
        {%- set lower = read_to[true].get(name, [read_to[false].get(name, [0]) | max]) | min -%}
        {%- set point = "concat_ws('@', source_epoch, source_position)" -%}
        {%- set query -%}
            select '{{ name }}' as name, coalesce(max(ingest_batch), {{ lower }}) as upper, to_json(sort_array(collect_set(
                {%- if name == 'complete_snapshots' %}
                case when op = 'r' then named_struct('point', {{ point }}, 'id', event_id, 'row', from_json(
                    coalesce(get_json_object(value, '$.payload.after'), get_json_object(value, '$.after'),
                        get_json_object(value, '$.payload'), value),
                    'topic string, bronze_table string, row_count bigint')) end
                {%- else %}
                {{ "case when op = 't' then " ~ point ~ ' end' if name != 'rejected_events' else 'string(null)' }}
                {%- endif %}
            ))) as found
            from {{ table }}
            where {{ cdc_lakehouse._arrived_between(lower, 99991231235959999) }}
        {%- endset -%}
        {%- do queries.append(query) -%}
    {%- endfor -%}
    {%- set bounds = {} -%}
    {#- one task, as each is sent what all tables are read with: hundreds are -#}
    {%- for row in (run_query('select /*+ coalesce(1) */ * from (' ~ queries | join(' union all ') ~ ')') if queries else []) -%}
        {%- set found, markers = fromjson(row['found']), [] -%}
        {#- they become text of statements -#}
        {%- for marker in (found if row['name'] == 'complete_snapshots' else [])
            if marker.row.bronze_table and modules.re.fullmatch('[A-Za-z0-9._/:-]+', marker.row.topic ~ marker.id) -%}
            {%- do markers.append({
                'point': cdc_lakehouse._points([marker.point])[0], 'id': marker.id, 'relation': sources[row['name']],
                'table': marker.row.bronze_table, 'topic': marker.row.topic, 'rows': marker.row.row_count}) -%}
        {%- endfor -%}
        {%- set truncates = cdc_lakehouse._points(found) if row['name'] != 'complete_snapshots' else [] -%}
        {%- do bounds.update({row['name']: {'upper': row['upper'] | int, 'truncates': truncates, 'markers': markers}}) -%}
    {%- endfor -%}
    {%- do memory.update({'bounds': bounds}) -%} {#- at once: other threads read it meanwhile -#}
    {{ return(bounds) }}
{%- endmacro %}
