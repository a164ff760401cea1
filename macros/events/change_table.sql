{#
    The declaration that a staging model makes under `meta` (_macros.yml), checked by
    _check_change_table, with `carried`, the columns whose value a change may leave out: those
    that PostgreSQL may keep beside the row (TOAST), but the key, which is always sent, and `full`,
    those of which the source sends every value; and `others`, neither carried nor the key. The
    types are without ` full`. A stand-in while dbt parses.
#}
{% macro change_table(events) -%}
    {%- if not execute -%}
        {{ return({
            'key': 'key', 'columns': {'key': 'string'}, 'key_columns': [], 'carried': [], 'others': [], 'full': [],
            'source_names': {'key': ['key']}, 'ignored_fields': [], 'bronze': 'bronze',
            'bronze_relation': 'bronze.bronze'
        }) }}
    {%- endif -%}
    {%- set node = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model')
        | selectattr('schema', 'equalto', events.schema)
        | selectattr('alias', 'equalto', events.identifier) | first -%}
    {%- set meta = node.config.meta -%}
    {%- set parts = meta.get('key_columns', []) -%}
    {%- set columns = dict({meta['key']: 'string'} if parts else {}, **meta['columns']) -%}
    {%- set full = [] -%}
    {%- for column, type in columns.items() if type.endswith(' full') -%}
        {%- do full.append(column) -%}
        {%- do columns.update({column: type.removesuffix(' full')}) -%}
    {%- endfor -%}
    {%- set carried = columns.items() | rejectattr(0, 'in', [meta['key']] + full) | selectattr(1, 'in', [
        'string', 'json', 'bpchar', 'string hashed', 'bpchar hashed'
    ]) | map('first') | list -%}
    {%- set names = {} -%}
    {%- for column in meta['columns'] -%}
        {%- set given = meta.get('source_names', {}).get(column, column) -%}
        {%- do names.update({column: [given] if given is string else given}) -%}
    {%- endfor -%}
    {%- set source = graph.sources[node.depends_on.nodes[0]] -%}
    {{ return({
        'key': meta['key'], 'columns': columns, 'key_columns': parts, 'carried': carried,
        'source_names': names, 'ignored_fields': meta.get('ignored_fields', []),
        'bronze': source.name, 'bronze_relation': source.schema ~ '.' ~ source.name, 'name': node.name,
        'events': events | string, 'full': full,
        'others': columns | reject('in', carried + [meta['key']]) | list
    }) }}
{%- endmacro %}
