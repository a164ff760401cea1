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
    {%- for position, decision in truncates.items() if decision not in ['apply', 'ignore'] -%}
        {{ exceptions.raise_compiler_error(
            "variable 'cdc_lakehouse_truncates' says '" ~ decision ~ "' for position "
            ~ position ~ '; it is apply or ignore'
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
    {%- set tables = {} -%}
    {%- for source in cdc_lakehouse.bronze_sources() -%}
        {%- do tables.update({source.name: source.schema ~ '.' ~ source.name}) -%}
    {%- endfor -%}
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
        {%- if bronze_table in bounds -%}
            {%- set found = run_query(
                'select distinct source_position from '
                ~ cdc_lakehouse.bronze_events(tables[bronze_table])
                ~ " where op = 'r' and source_position in ('" ~ positions | join("', '") ~ "')"
                ~ ' and ingest_batch <= ' ~ bounds[bronze_table]['upper']
            ).columns[0].values() -%}
            {%- for position in positions if position not in found -%}
                {{ exceptions.raise_compiler_error(
                    variable ~ 'names position ' ~ position ~ ' of bronze.' ~ bronze_table
                    ~ ', which holds no snapshot read with it'
                    ~ ' (docs/runbook.md, A complete snapshot, named by hand)'
                ) }}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}

    {%- set counts = [] -%}
    {%- for marker in bounds.get('complete_snapshots', {}).get('markers', []) if marker['table'] in bounds -%}
        {%- set waiting = [] -%}
        {%- for node in graph.nodes.values() if node.unique_id in selected_resources
            and node.config.materialized in ['cdc_merge', 'cdc_history']
            and marker['table'] in cdc_lakehouse._bronze_tables_of(node) -%}
            {%- set applied = cdc_lakehouse.progress(
                api.Relation.create(schema=node.schema, identifier=node.alias)
            ).get('complete_snapshots.' ~ marker['table'], '').split() -%}
            {%- if marker['position'] > (applied | max | default('', true)) -%}
                {%- do waiting.append(node) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if waiting -%}
            {%- do counts.append(
                "select '" ~ marker['table'] ~ "', '" ~ marker['position'] ~ "', " ~ marker['rows']
                ~ ', count(distinct coalesce(key, value)) from '
                ~ cdc_lakehouse.bronze_events(tables[marker['table']])
                ~ " where op = 'r' and source_position = '" ~ marker['position'] ~ "' and topic = '"
                ~ marker['topic'] ~ "' and ingest_batch <= " ~ bounds[marker['table']]['upper']
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for bronze_table, position, expected, read in (
        run_query(counts | join(' union all ')) if counts else []
    ) -%}
        {%- if read | int >= expected | int -%}
            {%- do snapshots.setdefault(bronze_table, []).append(position) -%}
        {%- else -%}
            {%- do log(
                'snapshot of bronze.' ~ bronze_table ~ ' at position ' ~ position ~ ': ' ~ read ~ ' of '
                ~ expected ~ ' rows have arrived; rows that it lacks are kept until all have', info=true
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
