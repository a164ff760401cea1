{# The declaration that a staging model makes under `meta`, with what follows from its types. #}
{% macro change_table(events) -%}
    {%- if execute -%}
        {%- set node = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model')
            | selectattr('schema', 'equalto', events.schema)
            | selectattr('alias', 'equalto', events.identifier) | first -%}
        {%- set source = graph.sources[node.depends_on.nodes[0]] -%}
    {%- endif -%}
    {%- set meta = node.config.meta if execute else {'key': 'key', 'columns': {'key': 'string'}} -%}
    {%- set parts = meta.get('key_columns', []) -%}
    {%- set columns, names = {meta['key']: 'string'} if parts else {}, {} -%}
    {%- set full, unchanged = [], [] -%}
    {%- for column, type in meta['columns'].items() -%}
        {%- set given = meta.get('source_names', {}).get(column, column) -%}
        {%- do names.update({column: [given] if given is string else given}) -%}
        {%- do columns.update({column: type.removesuffix(' full')}) -%}
        {%- do full.append(column) if type.endswith(' full') -%}
        {%- do unchanged.append(column) if column != meta['key']
            and type in ['string', 'json', 'bpchar', 'string hashed', 'bpchar hashed'] -%}
    {%- endfor -%}
    {{ return({
        'key': meta['key'], 'columns': columns, 'key_columns': parts, 'source_names': names,
        'unchanged': unchanged, 'full': full, 'others': columns | reject('in', unchanged + [meta['key']]) | list,
        'ignored_fields': meta.get('ignored_fields', []), 'events': events | string,
        'name': node.name if execute, 'bronze': source.name if execute else 'bronze',
        'bronze_relation': source.schema ~ '.' ~ source.name if execute else 'bronze.bronze'
    }) }}
{%- endmacro %}
