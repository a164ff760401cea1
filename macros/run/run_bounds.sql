{#
    How far this run reads each bronze table that a selected model reads: a mapping from its
    name to `upper` (an `ingest_batch`, 0 where it holds nothing) and `truncates`, the positions of
    those that no model has read yet.

    on-run-start asks for it first, so that all models of a run agree while the ingest goes on.
    A table is looked at from where its readers are: the cost follows what is new.
#}
{% macro run_bounds() -%}
    {%- set memory = cdc_lakehouse.run_memory('bounds') -%}
    {%- if execute and not memory -%}
        {%- set read = [] -%}
        {%- for node in graph.nodes.values()
            if node.resource_type == 'model' and node.unique_id in selected_resources -%}
            {%- do read.extend(cdc_lakehouse.bronze_tables_of(node)) -%}
        {%- endfor -%}
        {%- set queries = [] -%}
        {%- for source in cdc_lakehouse.bronze_sources() if source.name in read -%}
            {%- set read_to = cdc_lakehouse.lowest_progress(source.name) -%}
            {%- set query -%}
                select
                    '{{ source.name }}',
                    coalesce(max(ingest_batch), {{ read_to }}),
                    array_join(collect_set(
                        case when op = 't' then source_position end
                    ), ' ')
                from {{ cdc_lakehouse.bronze_events(source.schema ~ '.' ~ source.name) | indent(16) }}
                where {{ cdc_lakehouse.arrived_between(read_to, 99991231235959999) }}
            {%- endset -%}
            {%- do queries.append(query) -%}
        {%- endfor -%}
        {%- set bounds = {} -%}
        {%- if queries -%}
            {%- for row in run_query(queries | join(' union all ')) -%}
                {%- do bounds.update({
                    row[0]: {'upper': row[1] | int, 'truncates': row[2].split()}
                }) -%}
            {%- endfor -%}
        {%- endif -%}
        {#- at once: other threads read it meanwhile -#}
        {%- do memory.update(bounds) -%}
    {%- endif -%}
    {{ return(memory) }}
{%- endmacro %}
