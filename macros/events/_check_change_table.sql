{# Stop where a staging model's declaration is missing, wrong or misspelt; the error names every setting. #}
{% macro _check_change_table(name, meta) -%}
    {%- set known = ['key', 'columns', 'key_columns', 'source_names', 'ignored_fields'] -%}
    {%- set types = ['bigint', 'boolean', 'bpchar', 'bpchar hashed', 'date', 'double', 'int', 'json', 'smallint',
        'string', 'string hashed', 'timestamp', 'timestamptz'] -%}
    {%- set other_types = 'decimal\\([0-9]+, *[0-9]+\\)( base64)?|timestamp\\([0-6]\\)|(json|(string|bpchar)( hashed)?) full' -%}
    {%- set taken = cdc_lakehouse.position_columns() + [
        'carried_columns', 'cdc_state', 'topic_generation', 'topic_partition', 'position_before_read',
        'last_read_at', 'event_id', 'topic', 'kafka_partition', 'key', 'ingest_date',
        'row_image', 'fields', 'unavailable_columns', 'rejection'] -%}
    {%- set columns = meta.get('columns') if meta.get('columns') is mapping else {} -%}
    {%- set key, parts = meta.get('key'), meta.get('key_columns', []) -%}
    {%- set given, ignored = meta.get('source_names', {}), meta.get('ignored_fields', []) -%}
    {#- Python's text of a list of names, and of a mapping to a name or a list -#}
    {%- set name_form = "'[^'`?\\\\]+'" -%}
    {%- set list_form = '\\[((%s)(, |(?=\\])))*\\]' % name_form -%}
    {%- set mapping_form = '\\{(%s: (%s|(?!\\[\\])%s)(, |(?=\\})))*\\}' % (name_form, name_form, list_form) -%}
    {%- set names = dict(zip(columns, columns)) -%}
    {%- do names.update(given if given is mapping else {}) -%}
    {%- set fields = modules.re.findall("'([^']+)'", names.values() | list | string) -%}
    {%- set unquoted, errors = "without quotes, '?' and '\\'", [] -%}
    {%- for setting in meta if setting not in known -%}
        {%- do errors.append("unknown setting '%s' under meta; known: %s" % (setting, known | join(', '))) -%}
    {%- endfor -%}
    {%- for is_wrong, setting, rule in [
        (not columns, 'columns', 'it maps each column to its type'),
        (not key or (key in columns) == ('key_columns' in meta), 'key',
            "it is one of the columns or, beside 'key_columns', a name that the source has not"),
        ('key_columns' in meta and (not modules.re.fullmatch(list_form, parts | string) or parts | length < 2
            or parts | reject('in', columns) | list), 'key_columns', 'it lists two columns or more'),
        (not modules.re.fullmatch(mapping_form, given | string) or names | length > columns | length
            or fields | unique(case_sensitive=true) | list | length < fields | length, 'source_names',
            'it maps columns to their names at the source (of a renamed one a list, the newest first), each once, '
            ~ unquoted),
        (not modules.re.fullmatch(list_form, ignored | string) or ignored | select('in', fields) | list,
            'ignored_fields', 'it lists fields of the events that no column holds, ' ~ unquoted)] if is_wrong -%}
        {%- do errors.append("setting '%s' under meta is %r; %s" % (setting, meta.get(setting), rule)) -%}
    {%- endfor -%}
    {%- set own = ([key] if parts else []) + columns | list -%}
    {%- set taken = (taken + own) | map('lower') | list -%}
    {%- for column in own if taken.count(column | lower) > 1
        or not modules.re.fullmatch('(?!__cdc_|_hoodie_)[a-z_][a-z0-9_]*', column | lower) -%}
        {%- do errors.append(
            "setting 'columns' under meta names '%s', which no column here can be called: give it a name of letters,"
            " digits and underscores that is not taken, and the source's under 'source_names'" % column) -%}
    {%- endfor -%}
    {%- for column, type in columns.items() if type not in types and not modules.re.fullmatch(other_types, type) -%}
        {%- do errors.append("setting 'columns' under meta gives '%s' the type '%s'; known: %s, decimal(p,s),"
            " decimal(p,s) base64, timestamp(p); and of the texts and json with ' full'"
            % (column, type, types | join(', '))) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error("model '%s': %s" % (name, errors | join('; '))) if errors -%}
{%- endmacro %}
