{#
    The history of a table (see row_history and _merge_changes). Supports what cdc_merge does, but no
    `partition_by`. The `unique_key` is history_id.
#}
{% materialization cdc_history, adapter='spark' %}
    {{ return(cdc_lakehouse._merge_changes()) }}
{% endmaterialization %}
