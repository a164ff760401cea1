{#
    True for a compared event that is older than its key's stored row, or may be. A create
    after a key change is unclear for another reason: what it lacks.
#}
{% macro is_late() -%}
    (
        standing = 'older'
        or (standing = 'unclear' and not (op = 'c' and size(unavailable_columns) > 0))
    )
{%- endmacro %}
