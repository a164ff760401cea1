{#
    Before a run: bronze is registered, the bounds are fixed for all models, and every decision
    is made.
#}
{% macro start_run() -%}
    {%- if not execute -%}{{ return('') }}{%- endif -%}
    {%- set is_build = flags.WHICH in ['build', 'run', 'retry'] -%}
    {%- set models = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') | list -%}
    {%- set quarantine = models | selectattr('name', 'equalto', 'rejected_rows') | first -%}
    {%- for node in models if is_build and 'columns' in node.config.meta and 'key' in node.config.meta -%}
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

    {%- do cdc_lakehouse._register_bronze() -%}
    {%- do cdc_lakehouse.run_bounds() -%}
    {%- if is_build -%}{%- do cdc_lakehouse.check_decisions() -%}{%- endif -%}
{%- endmacro %}
