{# The properties that a table is created with, by name: ours, and over them the model's `tblproperties`. #}
{% macro table_properties() -%}
    {%- set properties = {
        'type': 'cow',
        'hoodie.write.table.version': '6', 'hoodie.write.auto.upgrade': 'false',
        'hoodie.table.timeline.timezone': 'UTC',
        'hoodie.metadata.enable': 'false',
        'hoodie.embed.timeline.server': 'false',
        'hoodie.write.markers.type': 'DIRECT',
        'hoodie.parquet.compression.codec': 'zstd',
        'hoodie.parquet.bloom.filter.enabled': 'false',
        'hoodie.datasource.hive_sync.enable': 'false', 'hoodie.datasource.meta.sync.enable': 'false',
        'hoodie.clean.commits.retained': '60', 'hoodie.clean.trigger.max.commits': '10',
        'hoodie.keep.min.commits': '75', 'hoodie.keep.max.commits': '95',
    } -%}
    {%- do properties.update({'hoodie.spark.sql.insert.into.operation': 'upsert'})
        if config.get('materialized') in ['cdc_merge', 'cdc_history'] -%}
    {%- set partition = config.get('partition_by') -%}
    {%- if partition -%}
        {%- do properties.update({
            'hoodie.index.type': 'GLOBAL_SIMPLE',
            'hoodie.simple.index.update.partition.path': 'true',
            'hoodie.datasource.overwrite.mode': 'STATIC',
            'hoodie.datasource.write.partitionpath.urlencode': 'true',
        }) -%}
    {%- endif -%}
    {%- do properties.update(config.get('tblproperties') or {}) -%}
    {%- set stored_as = [properties['type']] + (['partition ' ~ partition] if partition else []) -%}
    {%- for name in ['hoodie.index.type', 'hoodie.bucket.index.num.buckets'] if name in properties -%}
        {%- do stored_as.append(name ~ ' ' ~ properties[name]) -%}
    {%- endfor -%}
    {{ return(dict(properties, **{'lakehouse.stored_as': stored_as | join(', ')})) }}
{%- endmacro %}
