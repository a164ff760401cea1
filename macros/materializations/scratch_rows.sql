{# Compute a query of a model once, into files, for the statements that follow; its rows as a relation. #}
{% macro scratch_rows(name=none, query='select 1 as nothing where false') -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.run', {}) -%}
    {%- if 'scratch' not in memory -%}
        {%- set described = run_query('describe schema ' ~ generate_schema_name('staging', none)).rows -%}
        {%- set location = described | selectattr('info_name', 'equalto', 'Location') | first -%}
        {%- do memory.update({'scratch': location['info_value'] ~ '/scratch'}) -%}
    {%- endif -%}
    {%- set folder = memory['scratch'] ~ ('/' ~ [this.schema, this.identifier, name] | join('__') if name else '') -%}
    {%- do cdc_lakehouse.run_statement("insert overwrite directory '" ~ folder ~ "' using parquet " ~ query) -%}
    {{ return('parquet.`' ~ folder ~ '`' if name else '') }}
{%- endmacro %}
