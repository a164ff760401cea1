{#
    What a run has asked once and need not ask again, a mapping for each `kind`. It lives in
    the graph, which all nodes of a run share, and ends with the run.
#}
{% macro run_memory(kind) -%}
    {{ return(graph.setdefault('cdc_lakehouse', {}).setdefault(kind, {})) }}
{%- endmacro %}
