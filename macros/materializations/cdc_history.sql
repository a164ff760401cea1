{# The history of a table, as cdc_merge with `scd_type=2`. The `unique_key` is history_id. #}
{% materialization cdc_history, adapter='spark' %}
    {{ return(cdc_lakehouse.materialization_cdc_merge_spark()) }}
{% endmaterialization %}
