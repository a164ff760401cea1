{#
    Stop where a staging model is not listed in the model `rejected_rows`: its rejected rows
    would be nowhere.
#}
{% macro stop_at_unlisted_model() -%}
    {%- set models = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') | list -%}
    {%- set quarantine = models | selectattr('name', 'equalto', 'rejected_rows') | first -%}
    {%- for node in models if 'columns' in node.config.meta and 'key' in node.config.meta -%}
        {%- if not quarantine -%}
            {{ exceptions.raise_compiler_error(
                "there is no model 'rejected_rows', where rejected rows of '" ~ node.name
                ~ "' would go: add one that calls the macro rejected_rows"
            ) }}
        {%- elif node.unique_id not in quarantine.depends_on.nodes -%}
            {{ exceptions.raise_compiler_error(
                "model 'rejected_rows' does not list '" ~ node.name
                ~ "', whose rejected rows would be nowhere: add a line for it to "
                ~ quarantine.original_file_path
            ) }}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
