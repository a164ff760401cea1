{#
    What a table has recorded of its own progress: its properties that start with
    `lakehouse.`, without that prefix; and `insert`, what Hudi takes an insert for.
    Properties of the catalogue, so that recording costs no commit.
#}
{% macro progress(relation) -%}
    {%- set memory = cdc_lakehouse.run_memory('progress') -%}
    {%- if relation | string not in memory -%}
        {%- set recorded = {} -%}
        {%- for row in run_query('show tblproperties ' ~ relation) -%}
            {%- if row[0].startswith('lakehouse.') -%}
                {%- do recorded.update({row[0][10:]: row[1]}) -%}
            {%- elif row[0] == 'hoodie.spark.sql.insert.into.operation' -%}
                {%- do recorded.update({'insert': row[1]}) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- do memory.update({relation | string: recorded}) -%}
    {%- endif -%}
    {{ return(memory[relation | string]) }}
{%- endmacro %}
