{#
    The columns of a change table whose value a change may leave out: those wide enough for
    PostgreSQL to keep beside the row (TOAST). A key is always sent.
#}
{% macro carried_names(table) -%}
    {%- set names = [] -%}
    {%- for column, type in table['columns'].items()
        if type in ['string', 'json', 'bpchar'] and column != table['key'] -%}
        {%- do names.append(column) -%}
    {%- endfor -%}
    {{ return(names) }}
{%- endmacro %}
