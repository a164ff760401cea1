{#
    Create a Hudi table and fill it, in two statements: the table first, then an overwrite.
    Of an increment to merge, compute the rows: several statements read them.

    A `create table as select` that is killed leaves files that no catalogue knows, and the
    next one refuses to go there. This way a build that is killed between any two statements
    finds a table, perhaps an empty one, and goes on from what that has recorded.

    A silver table's rows are computed into a scratch view first: Hudi 1.2.0 cannot plan an
    overwrite from some of the queries themselves ("Invalid call to toAttribute").

    Overrides dbt-spark's macro of this name (1.11.0, adapters.sql); differs for tables of
    the format hudi only.
#}
{% macro spark__create_table_as(temporary, relation, compiled_code, language='sql') -%}
    {%- set is_merge = config.get('incremental_strategy') == 'merge' -%}
    {%- if temporary and is_merge and not nothing_arrived() -%}
        {{ scratch_view(relation.identifier, compiled_code) }}
    {%- elif temporary -%}
        {{ create_temporary_view(relation, compiled_code) }}
    {%- elif config.get('file_format') != 'hudi' -%}
        {{ dbt.spark__create_table_as(temporary, relation, compiled_code, language) }}
    {%- else -%}
        {%- set rows = this.identifier ~ '__rows' -%}
        {%- set query = compiled_code -%}
        {%- if is_merge -%}
            {%- do create_scratch_view(rows, compiled_code) -%}
            {%- set query = 'select * from ' ~ rows -%}
        {%- endif -%}
        {%- set names = [] -%}
        {%- set columns = [] -%}
        {%- for row in run_query('describe query ' ~ query) -%}
            {%- do names.append(row[0]) -%}
            {%- do columns.append('`' ~ row[0] ~ '` ' ~ row[1]) -%}
        {%- endfor -%}
        {%- call statement('create_table') -%}
            create table if not exists {{ relation }} (
                {{ columns | join(', ') }}
            )
            {{ file_format_clause() }}
            {{ options_clause() }}
            {{ tblproperties_clause() }}
        {%- endcall -%}
        {%- if 'carried_columns' in names -%}
            {%- set query = 'select * from ' ~ settled_rows(
                rows, "exists(carried_columns, name -> name like '%?')", names
            ) -%}
        {%- endif -%}
        insert overwrite table {{ relation }}
        {{ query }}
    {%- endif -%}
{%- endmacro %}
