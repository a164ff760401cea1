{#
    The place of a carried value that no event has brought yet: a place of nulls. Not null
    itself: Spark's interpreted projections fail on a null struct in an array.
#}
{% macro unknown_place() -%}
from_json('{}', '{{ cdc_lakehouse.place_type() }}')
{%- endmacro %}
