{#
    The declaration (see change_table) of the change events that this model is of, and `query`, its
    rows: those of current_rows or row_history, or of `select * from` the staging model, which means
    the same. None of a model with rows of its own.
#}
{% macro _folded_table() -%}
    {%- for id in model.depends_on.nodes -%}
        {%- set node = graph.nodes.get(id) -%}
        {%- if node and 'columns' in node.config.meta and 'key' in node.config.meta -%}
            {%- set events = api.Relation.create(schema=node.schema, identifier=node.alias) -%}
            {%- if '__cdc_reason' in compiled_code -%}
                {{ return(dict(cdc_lakehouse.table_in_run(events), query=compiled_code)) }}
            {%- elif compiled_code.split() | join(' ') == 'select * from ' ~ events -%}
                {%- set query = cdc_lakehouse.row_history(events) if cdc_lakehouse.is_history(model)
                    else cdc_lakehouse.current_rows(events) -%}
                {{ return(dict(cdc_lakehouse.table_in_run(events), query=query)) }}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(none) }}
{%- endmacro %}
