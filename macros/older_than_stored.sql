{#
    The standing of an event that is older than the stored row: 'older', or 'unclear' where
    the row carries values that its own event did not bring, and this one might.
#}
{% macro older_than_stored() -%}
case
    when size(stored.carried_columns) = 0 then 'older'
    when
        event.op = 'u'
        and size(array_except(stored.carried_columns, event.unavailable_columns)) = 0
        then 'older'
    else 'unclear'
end
{%- endmacro %}
