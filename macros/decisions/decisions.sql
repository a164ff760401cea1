{#
    What the variable `cdc_lakehouse_<kind>` says of points (see _points): of `truncates` each
    one's decision, of `complete_snapshots` each bronze table's.
    The hook at the start asks first, and its answer is kept: a variable that a project sets
    below this package's name does not reach the project's own models.
#}
{% macro decisions(kind) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.decisions', {}) -%}
    {%- if kind in memory -%}{{ return(memory[kind]) }}{%- endif -%}
    {%- set given = var('cdc_lakehouse_' ~ kind, {}) -%}
    {%- if given is not mapping -%}
        {{ exceptions.raise_compiler_error(
            "variable 'cdc_lakehouse_" ~ kind ~ "' is " ~ given ~ '; it maps '
            ~ ('a position to a decision' if kind == 'truncates'
                else 'a bronze table to the position of its snapshot, or to a list of them')
        ) }}
    {%- endif -%}
    {%- set decisions = dict(zip(cdc_lakehouse._points(given), given.values())) if kind == 'truncates' else {} -%}
    {%- for name, value in given.items() if kind == 'complete_snapshots' -%}
        {%- set listed = [value] if value is string or value is not iterable else value -%}
        {%- do decisions.update({name: cdc_lakehouse._points(listed)}) -%}
    {%- endfor -%}
    {%- do memory.update({kind: decisions}) -%}
    {{ return(decisions) }}
{%- endmacro %}
