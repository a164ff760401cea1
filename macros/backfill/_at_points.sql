{# True for the events at some points; of its form so that files are pruned by position. #}
{% macro _at_points(points) -%}
    (
        {%- for epoch, position in points %}
        source_position = '{{ position }}' {{ 'and source_epoch = %s' % epoch if epoch is not none }}
        {{- ' or' if not loop.last }}
        {%- else %}
        false
        {%- endfor %}
    )
{%- endmacro %}
