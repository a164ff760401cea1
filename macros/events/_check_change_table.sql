{#
    Stop where a staging model's declaration is missing, wrong or misspelt; the error names
    every setting.
#}
{% macro _check_change_table(name, meta) -%}
    {%- set known = ['key', 'columns', 'key_columns', 'source_names'] -%}
    {%- set types = [
        'bigint', 'boolean', 'bpchar', 'bpchar hashed', 'date', 'double', 'int', 'json', 'smallint',
        'string', 'string hashed', 'timestamp', 'timestamptz'
    ] -%}
    {%- set taken = cdc_lakehouse.position_columns() + [
        'carried_columns', 'event_id', 'topic', 'kafka_partition', 'key', 'ingest_date',
        'row_image', 'fields', 'unavailable_columns', 'rejection'
    ] -%}
    {%- set columns = meta.get('columns') if meta.get('columns') is mapping else {} -%}
    {%- set key = meta.get('key') -%}
    {%- set errors = [] -%}
    {%- for setting in meta if setting not in known -%}
        {%- do errors.append("unknown setting '" ~ setting ~ "' under meta; known: " ~ known | join(', ')) -%}
    {%- endfor -%}
    {%- set parts = meta.get('key_columns') -%}
    {%- set has_parts = parts is sequence and parts is not string and parts | length > 1 -%}
    {%- for is_wrong, error in [
        (not columns, "'columns' under meta must map each column to its type"),
        ('key_columns' not in meta and key not in columns,
            "'key' under meta is '" ~ key ~ "', which is none of its columns"),
        ('key_columns' in meta and not has_parts, "'key_columns' under meta must list two columns or more"),
        (has_parts and (not key or key in columns), "'key' under meta is '" ~ key
            ~ "'; beside 'key_columns' it must name a column that the source has not"),
    ] if is_wrong -%}
        {%- do errors.append('setting ' ~ error) -%}
    {%- endfor -%}
    {%- for part in (parts if has_parts else []) if part not in columns -%}
        {%- do errors.append(
            "setting 'key_columns' under meta names '" ~ part ~ "', which is none of its columns"
        ) -%}
    {%- endfor -%}
    {%- for column in ([key] if parts else []) + columns | list -%}
        {%- if column | lower in taken
            or not modules.re.fullmatch('(?!fold_|_hoodie_)[a-z_][a-z0-9_]*', column | lower) -%}
            {%- do errors.append(
                "setting 'columns' under meta names '" ~ column
                ~ "', which no column here can be called: give it a name of letters, digits and"
                ~ " underscores that is not taken, and the source's under 'source_names'"
            ) -%}
        {%- endif -%}
        {%- do taken.append(column | lower) -%}
    {%- endfor -%}
    {%- for column, type in columns.items() if type not in types and not modules.re.fullmatch(
        'decimal\\([0-9]+, *[0-9]+\\)( base64)?|timestamp\\([0-6]\\)', type
    ) -%}
        {%- do errors.append(
            "setting 'columns' under meta gives '" ~ column ~ "' the type '" ~ type ~ "'; known: "
            ~ types | join(', ') ~ ', decimal(p,s), decimal(p,s) base64, timestamp(p)'
            ~ ("; ' or null' goes: a value that the type cannot hold is null"
                if type.endswith(' or null') else '')
            ~ ('; only string and bpchar can be hashed' if type.endswith(' hashed') else '')
        ) -%}
    {%- endfor -%}
    {%- set given = meta.get('source_names', {}) -%}
    {%- set names = [] -%}
    {%- for column in columns if given is mapping -%}
        {%- do names.append(given.get(column, column)) -%}
    {%- endfor -%}
    {%- if given is not mapping
        or given | reject('in', columns) | list
        or names | unique(case_sensitive=true) | list | length < names | length
        or '' in names
        or modules.re.search("['`?\\\\]", names | join) -%}
        {%- do errors.append(
            "setting 'source_names' under meta is " ~ given ~ '; it maps columns to their names at'
            ~ " the source, each once, without quotes, '?' and '\\\\'"
        ) -%}
    {%- endif -%}
    {%- if errors -%}
        {{ exceptions.raise_compiler_error("model '" ~ name ~ "': " ~ errors | join('; ')) }}
    {%- endif -%}
{%- endmacro %}
