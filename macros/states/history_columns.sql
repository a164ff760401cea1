{# The names of the columns that a history has beside the table's own. #}
{% macro history_columns() -%}
    {{ return([
        'history_id', 'valid_from', 'valid_to', 'is_current', 'op', 'from_epoch', 'from_position',
        'to_epoch', 'to_position', 'version_number', 'untyped_columns', 'ingest_batch', 'cdc_state'
    ]) }}
{%- endmacro %}
