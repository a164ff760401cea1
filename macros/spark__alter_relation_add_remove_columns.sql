{#
    Add columns to a table, after what a killed write left in flight has been rolled back.

    Hudi records a new column in a commit of its own, and does not look for unfinished ones
    before it. Rolled back later, behind that commit, they end every build
    (HoodieRollbackException). A delete of nothing rolls them back.

    Takes the place of dbt-spark's macro of this name (1.11.0, adapters.sql), and calls it.
#}
{% macro spark__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
    {%- if add_columns and config.get('file_format') == 'hudi' -%}
        {%- do run_query('delete from ' ~ relation ~ ' where false') -%}
    {%- endif -%}
    {{ return(dbt.spark__alter_relation_add_remove_columns(
        relation, add_columns, remove_columns
    )) }}
{%- endmacro %}
