{# The names of the Hudi tables below a folder, whether or not the catalogue knows them. #}
{% macro written_tables(folder) -%}
    {%- set memory = cdc_lakehouse.run_memory('written') -%}
    {%- if folder not in memory -%}
        {%- set names = [] -%}
        {%- for row in run_query(
            "select distinct element_at(split(_metadata.file_path, '/'), -3) from text.`"
            ~ folder ~ '/*/.hoodie/hoodie.properties`'
        ) -%}
            {%- do names.append(row[0]) -%}
        {%- endfor -%}
        {%- do memory.update({folder: names}) -%}
    {%- endif -%}
    {{ return(memory[folder]) }}
{%- endmacro %}
