{# After a gold model: record what it was computed from (see inputs_state). #}
{% macro record_inputs() -%}
    {%- if execute -%}
        {%- do record(this, {'inputs': inputs_state()}) -%}
    {%- endif -%}
{%- endmacro %}
