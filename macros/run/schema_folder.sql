{# Where a schema's tables are. #}
{% macro schema_folder(schema) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.folders', {}) -%}
    {%- if schema not in memory -%}
        {%- for row in run_query('describe schema ' ~ schema) if row[0] == 'Location' -%}
            {%- do memory.update({schema: row[1]}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(memory[schema]) }}
{%- endmacro %}
