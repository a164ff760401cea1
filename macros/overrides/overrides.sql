{# What the variable `cdc_lakehouse_<kind>` says of points (see _points). #}
{% macro overrides(kind) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.run', {}) -%}
    {%- if kind in memory or not execute -%}{{ return(memory.get(kind, {})) }}{%- endif -%}
    {%- set given, sources, decisions = var('cdc_lakehouse_' ~ kind, {}), cdc_lakehouse.bronze_sources(), {} -%}
    {%- set errors = [] if given is mapping else ['is ' ~ given ~ '; it maps ' ~ ('a position to a decision'
        if kind == 'truncates' else 'a bronze table to the position of its snapshot, or to a list of them')] -%}
    {%- for name, value in (given.items() if given is mapping else []) -%}
        {%- set named = name if kind == 'truncates' else value -%}
        {%- set named = [named] if named is string or named is not iterable else named -%}
        {%- for text in named | map('string') if not modules.re.fullmatch('([0-9]+@)?[0-9a-f:/]+', text) -%}
            {%- do errors.append("gives '" ~ text ~ "' for " ~ (value if kind == 'truncates' else name) ~ '; a position is'
                ~ ' a text of source_position, or an LSN as a whole number; before it, with an @, stands no more than the'
                ~ ' number of an epoch') -%}
        {%- endfor -%}
        {%- if kind == 'truncates' and value not in ['apply', 'ignore'] -%}
            {%- do errors.append("says '" ~ value ~ "' for position " ~ name ~ '; it is apply or ignore') -%}
        {%- elif kind != 'truncates' and name not in sources -%}
            {%- do errors.append("names '" ~ name ~ "', which is no bronze table; known: " ~ sources | join(', ')) -%}
        {%- endif -%}
        {%- set points = cdc_lakehouse._points(named) -%}
        {%- do decisions.update({points[0]: value} if kind == 'truncates' else {name: points}) -%}
    {%- endfor -%}
    {%- for error in errors -%}
        {%- do exceptions.raise_compiler_error("variable 'cdc_lakehouse_" ~ kind ~ "' " ~ error) -%}
    {%- endfor -%}
    {{ return(memory.setdefault(kind, decisions)) }}
{%- endmacro %}
