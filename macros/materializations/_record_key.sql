{#
    The column that Hudi takes for a table's key, which it refuses where it is empty: `_hoodie_key`
    where the model's key is a text of the source, else that key itself. It has the key's value; one
    of hyphens alone, or of nothing, has a hyphen more, so that '' is a key as any other. Readers
    hide it with Hudi's other columns.
#}
{% macro _record_key(types, fold) -%}
    {%- set key = config.get('unique_key') -%}
    {%- set is_text = types[key] == 'string' and not cdc_lakehouse.is_history(model)
        and (not fold or (not fold['key_columns'] and fold['columns'][key] in ['string', 'bpchar'])) -%}
    {{ return('_hoodie_key' if is_text else key) }}
{%- endmacro %}
