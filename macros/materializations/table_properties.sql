{#
    The properties that a table is created with, name to value: ours, and over them the model's
    own `tblproperties`. Table version 6 is the newest that Athena and Trino read; Spark's
    catalogue registers the tables, and Hudi's sync would do it once more; versions are kept so
    that a long query keeps its files, and so many that the last commit costs what the first
    did (docs/decisions/0017-versions-by-commits.md). What each of the others saves:
    docs/decisions/0006-hudi-settings.md. How a model says that it is stored otherwise:
    docs/storage.md.
#}
{% macro table_properties() -%}
    {%- set properties = {
        'type': 'cow',
        'hoodie.write.table.version': '6',
        'hoodie.write.auto.upgrade': 'false',
        'hoodie.metadata.enable': 'false',
        'hoodie.embed.timeline.server': 'false',
        'hoodie.write.markers.type': 'DIRECT',
        'hoodie.datasource.hive_sync.enable': 'false',
        'hoodie.datasource.meta.sync.enable': 'false',
        'hoodie.clean.commits.retained': '60',
        'hoodie.clean.trigger.max.commits': '10',
        'hoodie.keep.min.commits': '75',
        'hoodie.keep.max.commits': '95',
    } -%}
    {%- if config.get('partition_by') -%}
        {%- do properties.update(cdc_lakehouse.partition_properties()) -%}
    {%- endif -%}
    {%- do properties.update(config.get('tblproperties') or {}) -%}
    {{ return(properties) }}
{%- endmacro %}
