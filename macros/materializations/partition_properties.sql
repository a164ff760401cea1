{#
    The properties of a partitioned table. A key is looked for in every partition, and its row
    moves where the column's value changes, as it does with a delete, which empties it. An
    overwrite replaces all partitions, whatever dbt-spark has set in the session. A value may
    hold what a folder's name cannot.
#}
{% macro partition_properties() -%}
    {{ return({
        'hoodie.index.type': 'GLOBAL_SIMPLE',
        'hoodie.simple.index.update.partition.path': 'true',
        'hoodie.datasource.overwrite.mode': 'STATIC',
        'hoodie.datasource.write.partitionpath.urlencode': 'true',
    }) }}
{%- endmacro %}
