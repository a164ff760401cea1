{#
    The declaration of a change table, as its staging model makes it under `meta`:
    `key` (a column's name) and `columns` (name: type), checked.

    A setting that is missing, wrong or misspelt is a compile error that names the model
    and the setting. Types: bigint, boolean, bpchar (trailing blanks are padding), date,
    decimal(p,s), double, int, json (text as the source has it), smallint, string,
    timestamp (without a zone), timestamptz (an instant).
#}
{% macro change_table(name, meta) -%}
    {%- set types = [
        'bigint', 'boolean', 'bpchar', 'date', 'double', 'int', 'json', 'smallint',
        'string', 'timestamp', 'timestamptz'
    ] -%}
    {%- set where = "model '" ~ name ~ "': " -%}
    {%- for setting in meta if setting not in ['key', 'columns'] -%}
        {{ exceptions.raise_compiler_error(
            where ~ "unknown setting '" ~ setting ~ "' under meta; known: key, columns"
        ) }}
    {%- endfor -%}
    {%- if meta.get('columns') is not mapping or not meta['columns'] -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'columns' under meta must map each column to its type"
        ) }}
    {%- endif -%}
    {%- if meta.get('key') not in meta['columns'] -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'key' under meta is '" ~ meta.get('key')
            ~ "', which is none of its columns"
        ) }}
    {%- endif -%}
    {%- set taken = position_columns() + [
        'carried_columns', 'event_id', 'topic', 'kafka_partition', 'key', 'ingest_date',
        'deleted', 'fields', 'unavailable_columns', 'rejection', 'standing'
    ] -%}
    {%- for column, type in meta['columns'].items() -%}
        {%- set is_decimal = modules.re.fullmatch('decimal\\([0-9]+, *[0-9]+\\)', type) -%}
        {%- if type not in types and not is_decimal -%}
            {{ exceptions.raise_compiler_error(
                where ~ "setting 'columns' under meta gives '" ~ column ~ "' the type '"
                ~ type ~ "'; known: " ~ types | join(', ') ~ ', decimal(p,s)'
            ) }}
        {%- endif -%}
        {%- if column in taken -%}
            {{ exceptions.raise_compiler_error(
                where ~ "setting 'columns' under meta names '" ~ column
                ~ "', a name that the events' own columns have"
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return({'key': meta['key'], 'columns': meta['columns']}) }}
{%- endmacro %}
