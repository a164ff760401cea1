{#
    A model's schema: `staging`, `silver` or `gold` on the targets `embedded` and `emr`; behind the target's own name
    elsewhere, where several lakes share a catalogue. Overrides dbt's macro (dbt-core 1.11,
    get_custom_name/get_custom_schema.sql), which puts the target's schema before it everywhere.
#}
{% macro default__generate_schema_name(custom_schema_name, node) -%}
    {%- set is_alone = target.name in ['embedded', 'emr'] or custom_schema_name is none -%}
    {{ custom_schema_name or target.schema if is_alone else target.schema ~ '_' ~ custom_schema_name }}
{%- endmacro %}
