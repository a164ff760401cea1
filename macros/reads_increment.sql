{#
    True where a model builds on its table, false where it builds it anew.

    Takes the place of dbt's `is_incremental`: this project rebuilds a table by an
    overwrite in one commit, so that `should_full_refresh` is never true for dbt
    (see should_full_refresh).
#}
{% macro reads_increment() -%}
    {%- if not execute -%}{{ return(false) }}{%- endif -%}
    {%- set wants_refresh = config.get('full_refresh') -%}
    {%- if wants_refresh is none -%}
        {%- set wants_refresh = flags.FULL_REFRESH -%}
    {%- endif -%}
    {%- if not is_incremental() or wants_refresh -%}{{ return(false) }}{%- endif -%}
    {{ return(not is_snapshot_due(model, this)) }}
{%- endmacro %}
