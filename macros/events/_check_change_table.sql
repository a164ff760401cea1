{#
    Stop where a staging model's declaration is missing, wrong or misspelt; the error names
    every setting.
#}
{% macro _check_change_table(name, meta) -%}
    {%- set known = ['key', 'columns', 'key_columns', 'source_names', 'ignored_fields'] -%}
    {%- set types = [
        'bigint', 'boolean', 'bpchar', 'bpchar hashed', 'date', 'double', 'int', 'json', 'smallint',
        'string', 'string hashed', 'timestamp', 'timestamptz'
    ] -%}
    {%- set taken = cdc_lakehouse.position_columns() + [
        'carried_columns', 'cdc_state', 'topic_generation', 'topic_partition', 'position_before_read',
        'last_read_at', 'event_id', 'topic', 'kafka_partition', 'key', 'ingest_date',
        'row_image', 'fields', 'unavailable_columns', 'rejection'
    ] -%}
    {%- set columns = meta.get('columns') if meta.get('columns') is mapping else {} -%}
    {%- set key = meta.get('key') -%}
    {%- set parts = meta.get('key_columns') -%}
    {%- set has_parts = parts is sequence and parts is not string and parts | length > 1 -%}
    {%- set unknown = meta | reject('in', known) | list -%}
    {%- set strays = (parts if has_parts else []) | reject('in', columns) | list -%}
    {%- set given = meta.get('source_names', {}) -%}
    {%- set names = dict(zip(columns, columns)) -%}
    {%- do names.update(given if given is mapping else {}) -%}
    {%- set ignored = meta.get('ignored_fields', []) -%}
    {%- set fields = [] -%}
    {%- for its in names.values() -%}{%- do fields.extend(its if its is iterable and its is not string else [its]) -%}{%- endfor -%}
    {%- set errors = [
        (unknown, "unknown setting '" ~ unknown | join("', '") ~ "' under meta; known: " ~ known | join(', ')),
        (not columns, "setting 'columns' under meta must map each column to its type"),
        ('key_columns' not in meta and key not in columns,
            "setting 'key' under meta is '" ~ key ~ "', which is none of its columns"),
        ('key_columns' in meta and not has_parts,
            "setting 'key_columns' under meta must list two columns or more"),
        (has_parts and (not key or key in columns), "setting 'key' under meta is '" ~ key
            ~ "'; beside 'key_columns' it must name a column that the source has not"),
        (strays, "setting 'key_columns' under meta names '" ~ strays | join("', '")
            ~ "', which is none of its columns"),
        (given is not mapping
            or names | length > columns | length
            or [] in names.values()
            or fields | unique(case_sensitive=true) | list | length < fields | length
            or '' in fields or fields | reject('string') | list
            or modules.re.search("['`?\\\\]", fields | join),
            "setting 'source_names' under meta is " ~ given ~ '; it maps columns to their names at'
            ~ " the source (of a renamed one a list, the newest first), each once, without quotes, '?'"
            ~ " and '\\\\'"),
        (ignored is string or ignored is mapping or ignored is not iterable
            or ignored | select('in', fields) | list or modules.re.search("['`?\\\\]", ignored | join),
            "setting 'ignored_fields' under meta is " ~ ignored ~ '; it lists fields of the events that no'
            ~ " column holds, without quotes, '?' and '\\\\'"),
    ] | selectattr(0) | map('last') | list -%}
    {%- set own = ([key] if parts else []) + columns | list -%}
    {%- set taken = (taken + own) | map('lower') | list -%}
    {%- for column in own if taken.count(column | lower) > 1
        or not modules.re.fullmatch('(?!__cdc_|_hoodie_)[a-z_][a-z0-9_]*', column | lower) -%}
        {%- do errors.append(
            "setting 'columns' under meta names '" ~ column
            ~ "', which no column here can be called: give it a name of letters, digits and"
            ~ " underscores that is not taken, and the source's under 'source_names'"
        ) -%}
    {%- endfor -%}
    {%- for column, type in columns.items() if type not in types and not modules.re.fullmatch(
        'decimal\\([0-9]+, *[0-9]+\\)( base64)?|timestamp\\([0-6]\\)|(json|(string|bpchar)( hashed)?) full',
        type
    ) -%}
        {%- do errors.append(
            "setting 'columns' under meta gives '" ~ column ~ "' the type '" ~ type ~ "'; known: "
            ~ types | join(', ') ~ ', decimal(p,s), decimal(p,s) base64, timestamp(p); and of the texts'
            ~ " and json with ' full'"
            ~ ("; ' or null' goes: a value that the type cannot hold is null"
                if type.endswith(' or null') else '')
            ~ ('; only string and bpchar can be hashed' if type.endswith(' hashed') else '')
        ) -%}
    {%- endfor -%}
    {%- if errors -%}
        {{ exceptions.raise_compiler_error("model '" ~ name ~ "': " ~ errors | join('; ')) }}
    {%- endif -%}
{%- endmacro %}
