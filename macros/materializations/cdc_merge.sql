{#
    A silver table (see _merge_changes). Supports `unique_key`, `partition_by`, `tblproperties`,
    `on_schema_change` (ignore, append_new_columns, fail), contracts, grants, hooks,
    `--full-refresh` and `--empty`, which creates the table and changes no row.
#}
{% materialization cdc_merge, adapter='spark' %}
    {{ return(cdc_lakehouse._merge_changes()) }}
{% endmaterialization %}
