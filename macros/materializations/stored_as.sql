{#
    How a model says that its table is stored, as text: what of it cannot change while the
    table is there. A new table records it (see create_or_alter_table).
#}
{% macro stored_as() -%}
    {%- set properties = cdc_lakehouse.table_properties() -%}
    {%- set said = [properties['type']] -%}
    {%- if config.get('partition_by') -%}
        {%- do said.append('partition ' ~ config.get('partition_by')) -%}
    {%- endif -%}
    {%- for name in ['hoodie.index.type', 'hoodie.bucket.index.num.buckets']
        if name in properties -%}
        {%- do said.append(name ~ ' ' ~ properties[name]) -%}
    {%- endfor -%}
    {{ return(said | join(', ')) }}
{%- endmacro %}
