{# Erase the rows of a table that a condition is true of, and the files that had them; how many. #}
{% macro _erase_rows(table, condition) -%}
    {%- set found = run_query('select count(*) from ' ~ table ~ ' where ' ~ condition).rows[0][0] -%}
    {%- if found -%}
        {%- do cdc_lakehouse.run_statement('delete from ' ~ table ~ ' where ' ~ condition) -%}
        {%- do cdc_lakehouse.remove_versions(table | string) -%}
    {%- endif -%}
    {{ return(found) }}
{%- endmacro %}
