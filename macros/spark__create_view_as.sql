{#
    Create a view, or leave it alone where it has this text already: analysing the view of a
    change table again would cost every build what a merge of a few events costs.

    Takes the place of dbt-spark's macro of this name (1.11.0, adapters.sql), which creates
    always, and knows comments and column contracts, which no view here has.
#}
{% macro spark__create_view_as(relation, sql) -%}
    {%- set text = local_md5(sql) -%}
    {%- if load_relation(relation) and progress(relation).get('text') == text -%}
        select 'unchanged' as outcome
    {%- else -%}
        create or replace view {{ relation }}
        tblproperties ('lakehouse.text' = '{{ text }}')
        as {{ sql }}
    {%- endif -%}
{%- endmacro %}
