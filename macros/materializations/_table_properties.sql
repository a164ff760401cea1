{#
    The properties that a table is created with, name to value: ours, and over them the model's
    own `tblproperties`. Table version 6 is the newest that Athena and Trino read; Spark's
    catalogue registers the tables, and Hudi's sync would do it once more; versions are kept so
    that a long query keeps its files, and so many that the last commit costs what the first
    did (docs/decisions/0017-versions-by-commits.md). What each of the others saves:
    docs/decisions/0006-hudi-settings.md. How a model says that it is stored otherwise:
    docs/storage.md.

    An `insert into` a silver table is an upsert by its key: a property of the table, as a
    session's setting would hold for what others insert, too. Not MERGE: it does the same in
    more steps.

    Of a partitioned table a key is looked for in every partition, and its row moves where the
    column's value changes, as it does with a delete, which empties it. An overwrite replaces all
    partitions, whatever dbt-spark has set in the session. A value may hold what a folder's
    name cannot. What of this cannot change while the table is there is text in
    `lakehouse.stored_as` (see _check_config).
#}
{% macro _table_properties() -%}
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
    {%- if config.get('materialized') == 'cdc_merge' -%}
        {%- do properties.update({'hoodie.spark.sql.insert.into.operation': 'upsert'}) -%}
    {%- endif -%}
    {%- if config.get('partition_by') -%}
        {%- do properties.update({
            'hoodie.index.type': 'GLOBAL_SIMPLE',
            'hoodie.simple.index.update.partition.path': 'true',
            'hoodie.datasource.overwrite.mode': 'STATIC',
            'hoodie.datasource.write.partitionpath.urlencode': 'true',
        }) -%}
    {%- endif -%}
    {%- do properties.update(config.get('tblproperties') or {}) -%}
    {%- set stored_as = [properties['type']] -%}
    {%- if config.get('partition_by') -%}
        {%- do stored_as.append('partition ' ~ config.get('partition_by')) -%}
    {%- endif -%}
    {%- for name in ['hoodie.index.type', 'hoodie.bucket.index.num.buckets'] if name in properties -%}
        {%- do stored_as.append(name ~ ' ' ~ properties[name]) -%}
    {%- endfor -%}
    {%- do properties.update({'lakehouse.stored_as': stored_as | join(', ')}) -%}
    {{ return(properties) }}
{%- endmacro %}
