{# Where a schema's tables are. The catalogue says it as a URL, in which a space is `%20`. #}
{% macro schema_folder(schema) -%}
    {%- set memory = run_memory('folders') -%}
    {%- if schema not in memory -%}
        {%- for row in run_query('describe schema ' ~ schema) if row[0] == 'Location' -%}
            {%- do memory.update({schema: row[1] | replace('%20', ' ')}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(memory[schema]) }}
{%- endmacro %}
