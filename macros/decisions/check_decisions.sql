{#
    Stop at a truncate without a decision: it has no rows, and ignoring it keeps rows that are
    gone. Stop at a decision that cannot be applied: a snapshot that bronze does not hold would
    delete every older row.

    Decide on the snapshots that a marker says were complete (see run_bounds), once as many keys
    have been read at its position as the table had rows: the marker may arrive first. A table
    that has applied one needs none of lower positions.
#}
{% macro check_decisions() -%}
    {%- set bounds = cdc_lakehouse.run_bounds() -%}
    {%- set truncates = cdc_lakehouse.decisions('truncates') -%}
    {%- for named, decision in var('cdc_lakehouse_truncates', {}).items() if decision not in ['apply', 'ignore'] -%}
        {{ exceptions.raise_compiler_error(
            "variable 'cdc_lakehouse_truncates' says '" ~ decision ~ "' for position "
            ~ named ~ '; it is apply or ignore'
        ) }}
    {%- endfor -%}
    {%- for bronze_table, bound in bounds.items() -%}
        {%- set readers = [] -%}
        {%- set recorded = [] -%}
        {%- for node in graph.nodes.values() if bound.get('truncates') and node.unique_id in selected_resources
            and node.config.materialized in ['cdc_merge', 'cdc_history'] -%}
            {%- for id in cdc_lakehouse._reads(node)['tables'] if graph.sources.get(id, {}).name == bronze_table -%}
                {%- do readers.append(node.name) -%}
                {%- do recorded.extend(cdc_lakehouse.recorded_truncates(node)) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- for point in bound.get('truncates', {})
            if point not in truncates and (none, point[1]) not in truncates
            and recorded.count(point) < [readers | length, 1] | max -%}
            {{ exceptions.raise_compiler_error(
                'bronze.' ~ bronze_table ~ ' holds a TRUNCATE at position ' ~ point | join('@')
                ~ ". Decide what to do about it: dbt build --vars '{cdc_lakehouse_truncates: {\""
                ~ point | join('@') ~ "\": apply}}' marks the table's older rows as deleted, ignore keeps"
                ~ ' them (docs/runbook.md)'
            ) }}
        {%- endfor -%}
    {%- endfor -%}

    {%- set variable = "variable 'cdc_lakehouse_complete_snapshots' " -%}
    {%- set snapshots = cdc_lakehouse.decisions('complete_snapshots') -%}
    {%- set tables = cdc_lakehouse.bronze_sources() -%}
    {%- set looked_for = [] -%}
    {%- for bronze_table, points in snapshots.items() -%}
        {%- if bronze_table not in tables -%}
            {{ exceptions.raise_compiler_error(
                variable ~ "names '" ~ bronze_table ~ "', which is no bronze table; known: "
                ~ tables | join(', ')
            ) }}
        {%- endif -%}
        {%- for point in points if bronze_table in bounds -%}
            {%- do looked_for.append({'table': bronze_table, 'point': point, 'rows': 1}) -%}
        {%- endfor -%}
        {#- each again with its epoch, once that is known -#}
        {%- if bronze_table in bounds -%}{%- do snapshots.update({bronze_table: []}) -%}{%- endif -%}
    {%- endfor -%}
    {%- set markers = bounds.get('complete_snapshots', {}).get('markers', []) -%}
    {%- for marker in markers if marker['table'] in bounds -%}
        {%- set applied = [] -%}
        {%- for node in graph.nodes.values() if node.unique_id in selected_resources
            and node.config.materialized in ['cdc_merge', 'cdc_history']
            and marker['table'] in cdc_lakehouse._bronze_tables_of(node) -%}
            {%- set recorded = cdc_lakehouse.progress(node).get('complete_snapshots.' ~ marker['table'], '') -%}
            {%- do applied.append(cdc_lakehouse._points(recorded.split()) | max | default((-1, ''), true)) -%}
        {%- endfor -%}
        {%- if applied and marker['point'] > applied | min -%}{%- do looked_for.append(marker) -%}{%- endif -%}
    {%- endfor -%}

    {%- set counts = [] -%}
    {%- for snapshot in looked_for -%}
        {%- do counts.append(
            "select '" ~ snapshot['table'] ~ "', '" ~ snapshot['point'][1] ~ "', " ~ snapshot['rows']
            ~ (', count(distinct coalesce(key, value)), true' if snapshot in markers else ', count(*), false')
            ~ (", '[" ~ snapshot['point'][0] ~ "]'" if snapshot in markers
                else ', to_json(sort_array(collect_set(source_epoch)))')
            ~ ' from ' ~ cdc_lakehouse.bronze_events(tables[snapshot['table']])
            ~ " where op = 'r' and " ~ cdc_lakehouse.at_points([snapshot['point']])
            ~ (" and topic = '" ~ snapshot['topic'] ~ "'" if snapshot in markers else '')
            ~ ' and ingest_batch <= ' ~ bounds[snapshot['table']]['upper']
        ) -%}
    {%- endfor -%}
    {%- for bronze_table, position, expected, read, is_marked, epochs in (
        run_query(counts | join(' union all ')) if counts else []
    ) -%}
        {%- set epochs = fromjson(epochs) -%}
        {%- if read < expected and is_marked -%}
            {%- do log(
                'snapshot of bronze.' ~ bronze_table ~ ' at position ' ~ position ~ ': ' ~ read ~ ' of '
                ~ expected ~ ' rows have arrived; rows that it lacks are kept until all have', info=true
            ) -%}
        {%- elif read < expected -%}
            {{ exceptions.raise_compiler_error(
                variable ~ 'names position ' ~ position ~ ' of bronze.' ~ bronze_table
                ~ ', which holds no snapshot read with it'
                ~ ' (docs/runbook.md, A complete snapshot, named by hand)'
            ) }}
        {%- elif epochs | length > 1 -%}
            {{ exceptions.raise_compiler_error(
                variable ~ 'names position ' ~ position ~ ' of bronze.' ~ bronze_table ~ ', and there are '
                ~ epochs | join('@' ~ position ~ ' and ') ~ '@' ~ position ~ ': name each with its epoch'
            ) }}
        {%- else -%}
            {%- do snapshots.setdefault(bronze_table, []).append((epochs[0], position)) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
