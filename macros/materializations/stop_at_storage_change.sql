{#
    Stop where a table is stored in another way than the model says: Hudi would go on in the
    old way, or write a key twice. A table of an earlier version has recorded nothing.
#}
{% macro stop_at_storage_change(relation) -%}
    {%- set before = cdc_lakehouse.progress(relation).get('stored_as', 'cow') -%}
    {%- set wanted = cdc_lakehouse.stored_as() -%}
    {%- if before != wanted -%}
        {{ exceptions.raise_compiler_error(
            relation ~ ' is stored as: ' ~ before ~ '; the model says: ' ~ wanted
            ~ '. Drop the table and build it again: dbt run-operation drop_table'
            ~ " --args '{table: " ~ relation.schema ~ '.' ~ relation.identifier ~ "}'"
            ~ ' (docs/storage.md)'
        ) }}
    {%- endif -%}
{%- endmacro %}
