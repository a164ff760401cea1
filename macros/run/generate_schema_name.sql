{# A model's schema. Overrides dbt's macro, which puts the target's schema before it everywhere. #}
{% macro default__generate_schema_name(custom_schema_name, node) -%}
    {%- set is_alone = target.name == 'embedded' or custom_schema_name is none -%}
    {{ custom_schema_name or target.schema if is_alone else target.schema ~ '_' ~ custom_schema_name }}
{%- endmacro %}
