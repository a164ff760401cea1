{# Stop where a column has another type in the table than in the model: Hudi cannot change it. #}
{% macro stop_at_type_change(relation, column, stored_type, type) -%}
    {{ exceptions.raise_compiler_error(
        relation ~ ': column ' ~ column ~ ' is ' ~ stored_type ~ ' in the table and ' ~ type
        ~ ' in the model. Drop the table and build it again: dbt run-operation drop_table'
        ~ " --args '{table: " ~ relation.schema ~ '.' ~ relation.identifier ~ "}'"
        ~ ' (docs/runbook.md)'
    ) }}
{%- endmacro %}
