{#
    What the variable `cdc_lakehouse_<kind>` says, with positions as bronze has them: of
    `truncates` each position's decision, of `complete_snapshots` each bronze table's positions.
    The hook at the start asks first, and its answer is kept: a variable that a project sets
    below this package's name does not reach the project's own models.
#}
{% macro decisions(kind) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.decisions', {}) -%}
    {%- if kind in memory -%}{{ return(memory[kind]) }}{%- endif -%}
    {%- set variable = 'cdc_lakehouse_' ~ kind -%}
    {%- set given = var(variable, {}) -%}
    {%- if given is not mapping -%}
        {{ exceptions.raise_compiler_error(
            "variable '" ~ variable ~ "' is " ~ given ~ '; it maps '
            ~ {'truncates': 'positions to apply or ignore',
               'complete_snapshots': 'a bronze table to the position of its snapshot, or to a list of them'}[kind]
        ) }}
    {%- endif -%}
    {%- set decisions = {} -%}
    {%- for name, value in given.items() -%}
        {%- if kind == 'truncates' -%}
            {%- do decisions.update({cdc_lakehouse._position_text(name): value}) -%}
        {%- else -%}
            {%- for position in ([value] if value is string or value is not iterable else value) -%}
                {%- do decisions.setdefault(name, []).append(cdc_lakehouse._position_text(position)) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do memory.update({kind: decisions}) -%}
    {{ return(decisions) }}
{%- endmacro %}
