{#
    Stop where a staging model is not listed in the model `rejected_rows`: its rejected rows
    would be nowhere. dbt must know what a model reads before it runs, so that the list cannot
    be found in the graph.
#}
{% macro stop_at_unlisted_model() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- for quarantine in graph.nodes.values() if quarantine.name == 'rejected_rows'
            and quarantine.resource_type == 'model' -%}
            {%- for node in graph.nodes.values() if node.resource_type == 'model'
                and 'columns' in node.config.meta
                and node.unique_id not in quarantine.depends_on.nodes -%}
                {{ exceptions.raise_compiler_error(
                    "model 'rejected_rows' does not list '" ~ node.name
                    ~ "', whose rejected rows would be nowhere: add a line for it to "
                    ~ quarantine.original_file_path
                ) }}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
