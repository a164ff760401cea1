{#
    Have Hudi take an `insert into` a table for an upsert by its key: a property of the table,
    as a session's setting would hold for what others insert, too.

    Not MERGE: it does the same in more steps (docs/decisions/0006-hudi-settings.md).
#}
{% macro upsert_on_insert(relation) -%}
    {%- if cdc_lakehouse.progress(relation).get('insert') != 'upsert' -%}
        {%- do cdc_lakehouse.run_statement(
            'alter table ' ~ relation
            ~ " set tblproperties ('hoodie.spark.sql.insert.into.operation' = 'upsert')"
        ) -%}
    {%- endif -%}
{%- endmacro %}
