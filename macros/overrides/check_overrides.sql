{# Stop at a truncate without a decision: it has no rows, and ignoring it keeps rows that are gone. #}
{% macro check_overrides() -%}
    {%- set bounds = cdc_lakehouse.run_bounds() -%}
    {%- set truncates, snapshots = cdc_lakehouse.overrides('truncates'), cdc_lakehouse.overrides('complete_snapshots') -%}
    {%- set looked_for, stored = [], {} -%}
    {%- for node in graph.nodes.values() if node.config.materialized in ['cdc_merge', 'cdc_history']
        and node.unique_id in selected_resources -%}
        {%- for bronze_table in cdc_lakehouse.reads_of(node)['bronze'] -%}
            {%- do stored.setdefault(bronze_table, []).append(cdc_lakehouse.stored_table(node)['recorded']) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for bronze_table, bound in bounds.items() -%}
        {%- set known, applied = [], [] -%}
        {%- for recorded in stored.get(bronze_table, []) -%}
            {%- do applied.append(cdc_lakehouse._points(recorded.get('complete_snapshots.' ~ bronze_table, '').split())) -%}
            {%- do known.extend(recorded.get('truncates', '').split() + recorded.get('ignored_truncates', '').split()) -%}
        {%- endfor -%}
        {%- for point in bound['truncates'] if point not in truncates and (none, point[1]) not in truncates
            and known.count(point | join('@')) < [applied | length, 1] | max -%}
            {%- do exceptions.raise_compiler_error(
                'bronze.' ~ bronze_table ~ ' holds a TRUNCATE at position ' ~ point | join('@')
                ~ ". Decide what to do about it: dbt build --vars '{cdc_lakehouse_truncates: {\"" ~ point | join('@')
                ~ "\": apply}}' marks the table's older rows as deleted, ignore keeps them (docs/runbook.md)") -%}
        {%- endfor -%}
        {%- for point in snapshots.pop(bronze_table, []) -%}
            {%- set lacking = [] -%} {#- what all tables have applied stays applied, also where its days are dropped since -#}
            {%- for points in applied or [[]] if point not in points -%}
                {%- do lacking.append(points) if point[1] not in points | map('last') | list -%}
                {%- do looked_for.append({'table': bronze_table, 'point': point, 'lacking': lacking}) if loop.first -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- set markers = bounds.get('complete_snapshots', {}).get('markers', [])
            | selectattr('table', 'equalto', bronze_table) | list -%}
        {%- for marker in markers -%}
            {#- of the same topic: positions of two are not comparable -#}
            {%- set later = markers | selectattr('topic', 'equalto', marker['topic'])
                | selectattr('point', 'ge', marker['point']) | map(attribute='point') | list -%}
            {%- for points in applied if not points | select('in', later) | list -%}
                {%- do looked_for.append(marker) if loop.first -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}

    {%- set counts = [] -%}
    {%- for snapshot in looked_for -%}
        {%- set query -%}
            select {{ loop.index0 }} as number, count(distinct coalesce(key, value)) as found,
                to_json(sort_array(collect_set(source_epoch))) as epochs
            from {{ cdc_lakehouse.bronze_sources()[snapshot['table']] }}
            where op = 'r' and ingest_batch <= {{ bounds[snapshot['table']]['upper'] }}
                and source_position = '{{ snapshot['point'][1] }}'
                {{ 'and source_epoch = %s' % snapshot['point'][0] if snapshot['point'][0] is not none }}
                {{ "and topic = '%s'" % snapshot['topic'] if 'topic' in snapshot }}
        {%- endset -%}
        {%- do counts.append(query) -%}
    {%- endfor -%}
    {%- for row in (run_query(counts | join(' union all ')) if counts else []) -%}
        {%- set snapshot = looked_for[row['number'] | int] -%}
        {%- set epoch, position = snapshot['point'] -%}
        {%- set epochs = [epoch] if 'topic' in snapshot else fromjson(row['epochs']) -%}
        {%- set named = 'position ' ~ position ~ ' of bronze.' ~ snapshot['table'] -%}
        {%- if row['found'] < snapshot.get('rows', 0) -%}
            {%- do log('snapshot at ' ~ named ~ ': ' ~ row['found'] ~ ' of ' ~ snapshot['rows']
                ~ ' rows have arrived; rows that it lacks are kept until all have', info=true) -%}
        {%- elif epochs | length > 1 or (not epochs and snapshot['lacking']) -%}
            {%- do exceptions.raise_compiler_error("variable 'cdc_lakehouse_complete_snapshots' names " ~ named ~ (
                ', and there are ' ~ epochs | join('@' ~ position ~ ' and ') ~ '@' ~ position ~ ': name each with its epoch' if epochs
                else ', which holds no snapshot read with it (docs/runbook.md, A complete snapshot, named by hand)')) -%}
        {%- elif epochs -%}
            {%- do snapshots.setdefault(snapshot['table'], []).append((epochs[0], position)) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
