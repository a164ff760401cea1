{# A point (see _points) as SQL, to be compared with the epoch and position of an event. #}
{% macro point(epoch, position) -%}
    named_struct('epoch', {{ epoch or 0 }}, 'position', '{{ position }}')
{%- endmacro %}
