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
    {%- set decisions = {} -%}
    {%- for name, value in given.items() -%}
        {%- set is_one = value is string or value is not iterable -%}
        {%- set listed = [name] if kind == 'truncates' else ([value] if is_one else value) -%}
        {%- for text in listed | map('string') if not modules.re.fullmatch('([0-9]+@)?[0-9a-f:/]+', text) -%}
            {{ exceptions.raise_compiler_error(
                "variable 'cdc_lakehouse_" ~ kind ~ "' gives '" ~ text ~ "' for "
                ~ (value if kind == 'truncates' else name)
                ~ '; a position is a text of source_position, or an LSN as a whole number; before it,'
                ~ ' with an @, stands no more than the number of an epoch'
            ) }}
        {%- endfor -%}
        {%- set points = cdc_lakehouse._points(listed) -%}
        {%- do decisions.update({points[0]: value} if kind == 'truncates' else {name: points}) -%}
    {%- endfor -%}
    {%- do memory.update({kind: decisions}) -%}
    {{ return(decisions) }}
{%- endmacro %}
