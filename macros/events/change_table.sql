{#
    The declaration of the change table that a staging model (`events`, a relation) makes under `meta`:
    `key` (a column's name), `columns` (name: type), where the source's key is of several
    columns `key_columns` (their names), and where a column has another name at the source
    `source_names` (name: the source's), checked. A key of several columns is a column of our
    own: their values, joined by `-`.

    A setting that is missing, wrong or misspelt is a compile error that names the model
    and the setting. Types: bigint, boolean, bpchar (trailing blanks are padding), date,
    decimal(p,s), decimal(p,s) base64 (of `decimal.handling.mode=precise`), double, int, json
    (text as the source has it), smallint, string, timestamp (without a zone), timestamp(p)
    (of p digits: Debezium sends milliseconds up to 3), timestamptz (an instant).

    The result has them, and `carried`, the columns whose value a change may leave out: those
    wide enough for PostgreSQL to keep beside the row (TOAST), but the key, which is always
    sent; and `bronze` and `bronze_relation`, the name of the bronze table that the model reads,
    without and with its schema. A stand-in while dbt parses, when there is no graph yet.

    A value that its column's type cannot hold is null, and the row names the column in
    `untyped_columns`.
#}
{% macro change_table(events) -%}
    {%- if not execute -%}
        {{ return({
            'key': 'key', 'columns': {'key': 'string'}, 'key_columns': [], 'carried': [],
            'source_names': {'key': 'key'}, 'bronze': 'bronze', 'bronze_relation': 'bronze.bronze'
        }) }}
    {%- endif -%}
    {%- set node = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model')
        | selectattr('schema', 'equalto', events.schema)
        | selectattr('alias', 'equalto', events.identifier) | first -%}
    {%- set meta = node.config.meta -%}
    {%- set types = [
        'bigint', 'boolean', 'bpchar', 'date', 'double', 'int', 'json', 'smallint',
        'string', 'timestamp', 'timestamptz'
    ] -%}
    {%- set where = "model '" ~ node.name ~ "': " -%}
    {%- set known = ['key', 'columns', 'key_columns', 'source_names'] -%}
    {%- for setting in meta if setting not in known -%}
        {{ exceptions.raise_compiler_error(
            where ~ "unknown setting '" ~ setting ~ "' under meta; known: " ~ known | join(', ')
        ) }}
    {%- endfor -%}
    {%- if meta.get('columns') is not mapping or not meta['columns'] -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'columns' under meta must map each column to its type"
        ) }}
    {%- endif -%}
    {%- set parts = meta.get('key_columns') -%}
    {%- if 'key_columns' in meta -%}
        {%- if parts is string or parts is not sequence or parts | length < 2 -%}
            {{ exceptions.raise_compiler_error(
                where ~ "setting 'key_columns' under meta must list two columns or more"
            ) }}
        {%- endif -%}
        {%- for part in parts if part not in meta['columns'] -%}
            {{ exceptions.raise_compiler_error(
                where ~ "setting 'key_columns' under meta names '" ~ part
                ~ "', which is none of its columns"
            ) }}
        {%- endfor -%}
        {%- if not meta.get('key') or meta['key'] in meta['columns'] -%}
            {{ exceptions.raise_compiler_error(
                where ~ "setting 'key' under meta is '" ~ meta.get('key')
                ~ "'; beside 'key_columns' it must name a column that the source has not"
            ) }}
        {%- endif -%}
    {%- elif meta.get('key') not in meta['columns'] -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'key' under meta is '" ~ meta.get('key')
            ~ "', which is none of its columns"
        ) }}
    {%- endif -%}
    {%- set taken = cdc_lakehouse.position_columns() + [
        'carried_columns', 'event_id', 'topic', 'kafka_partition', 'key', 'ingest_date',
        'row_image', 'fields', 'unavailable_columns', 'rejection'
    ] -%}
    {%- set seen = [] -%}
    {%- for column in ([meta['key']] if parts else []) + meta['columns'] | list -%}
        {%- if column | lower in taken + seen
            or not modules.re.fullmatch('(?!fold_|_hoodie_)[a-z_][a-z0-9_]*', column | lower) -%}
            {{ exceptions.raise_compiler_error(
                where ~ "setting 'columns' under meta names '" ~ column
                ~ "', which no column here can be called: give it a name of letters, digits and"
                ~ " underscores that is not taken, and the source's under 'source_names'"
            ) }}
        {%- endif -%}
        {%- do seen.append(column | lower) -%}
    {%- endfor -%}
    {%- set columns = {meta['key']: 'string'} if parts else {} -%}
    {%- for column, type in meta['columns'].items() -%}
        {%- do columns.update({column: type}) -%}
        {%- set has_arguments = modules.re.fullmatch(
            'decimal\\([0-9]+, *[0-9]+\\)( base64)?|timestamp\\([0-6]\\)', type
        ) -%}
        {%- if type not in types and not has_arguments -%}
            {{ exceptions.raise_compiler_error(
                where ~ "setting 'columns' under meta gives '" ~ column ~ "' the type '"
                ~ type ~ "'; known: " ~ types | join(', ')
                ~ ', decimal(p,s), decimal(p,s) base64, timestamp(p)'
                ~ ("; ' or null' goes: a value that the type cannot hold is null"
                    if type.endswith(' or null') else '')
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- set given = meta.get('source_names', {}) -%}
    {%- set source_names = {} -%}
    {%- for column in meta['columns'] -%}
        {%- do source_names.update({column: given[column] if column in given else column}) -%}
    {%- endfor -%}
    {%- set names = source_names.values() | list -%}
    {%- if given is not mapping
        or given | reject('in', source_names) | list
        or names | unique(case_sensitive=true) | list | length < names | length
        or '' in names
        or modules.re.search("['`?\\\\]", names | join) -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'source_names' under meta is " ~ given ~ '; it maps columns to'
            ~ " their names at the source, each once, without quotes, '?' and '\\\\'"
        ) }}
    {%- endif -%}
    {%- set carried = [] -%}
    {%- for column, type in columns.items()
        if type in ['string', 'json', 'bpchar'] and column != meta['key'] -%}
        {%- do carried.append(column) -%}
    {%- endfor -%}
    {%- set source = graph.sources[node.depends_on.nodes[0]] -%}
    {{ return({
        'key': meta['key'], 'columns': columns, 'key_columns': parts or [], 'carried': carried,
        'source_names': source_names, 'bronze': source.name,
        'bronze_relation': source.schema ~ '.' ~ source.name
    }) }}
{%- endmacro %}
