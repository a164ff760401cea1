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
        {%- for position in bound.get('truncates', []) if position not in truncates -%}
            {{ exceptions.raise_compiler_error(
                'bronze.' ~ bronze_table ~ ' holds a TRUNCATE at position ' ~ position
                ~ ". Decide what to do about it: dbt build --vars '{cdc_lakehouse_truncates: {\""
                ~ position ~ "\": apply}}' marks the table's older rows as deleted, ignore keeps"
                ~ ' them (docs/runbook.md)'
            ) }}
        {%- endfor -%}
    {%- endfor -%}

    {%- set variable = "variable 'cdc_lakehouse_complete_snapshots' " -%}
    {%- set snapshots = cdc_lakehouse.decisions('complete_snapshots') -%}
    {%- set tables = cdc_lakehouse.bronze_sources() -%}
    {%- set looked_for = [] -%}
    {%- for bronze_table, positions in snapshots.items() -%}
        {%- if bronze_table not in tables -%}
            {{ exceptions.raise_compiler_error(
                variable ~ "names '" ~ bronze_table ~ "', which is no bronze table; known: "
                ~ tables | join(', ')
            ) }}
        {%- endif -%}
        {%- for position in positions if not modules.re.fullmatch('[0-9a-f:/]+', position) -%}
            {{ exceptions.raise_compiler_error(
                variable ~ "gives '" ~ position ~ "' for " ~ bronze_table
                ~ '; a position is a text of source_position, or an LSN as a whole number'
            ) }}
        {%- endfor -%}
        {%- for position in positions if bronze_table in bounds -%}
            {%- do looked_for.append({'table': bronze_table, 'position': position, 'rows': 1}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set markers = bounds.get('complete_snapshots', {}).get('markers', []) -%}
    {%- for marker in markers if marker['table'] in bounds -%}
        {%- set applied = [] -%}
        {%- for node in graph.nodes.values() if node.unique_id in selected_resources
            and node.config.materialized in ['cdc_merge', 'cdc_history']
            and marker['table'] in cdc_lakehouse._bronze_tables_of(node) -%}
            {%- set recorded = cdc_lakehouse.progress(node).get('complete_snapshots.' ~ marker['table'], '') -%}
            {%- do applied.append(recorded.split() | max | default('', true)) -%}
        {%- endfor -%}
        {%- if applied and marker['position'] > applied | min -%}{%- do looked_for.append(marker) -%}{%- endif -%}
    {%- endfor -%}

    {%- set counts = [] -%}
    {%- for snapshot in looked_for -%}
        {%- do counts.append(
            "select '" ~ snapshot['table'] ~ "', '" ~ snapshot['position'] ~ "', " ~ snapshot['rows']
            ~ (', count(distinct coalesce(key, value)), true' if snapshot in markers else ', count(*), false')
            ~ ' from ' ~ cdc_lakehouse.bronze_events(tables[snapshot['table']])
            ~ " where op = 'r' and source_position = '" ~ snapshot['position'] ~ "'"
            ~ (" and topic = '" ~ snapshot['topic'] ~ "'" if snapshot in markers else '')
            ~ ' and ingest_batch <= ' ~ bounds[snapshot['table']]['upper']
        ) -%}
    {%- endfor -%}
    {%- for bronze_table, position, expected, read, is_marked in (
        run_query(counts | join(' union all ')) if counts else []
    ) -%}
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
        {%- elif is_marked -%}
            {%- do snapshots.setdefault(bronze_table, []).append(position) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
