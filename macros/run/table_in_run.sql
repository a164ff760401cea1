{# The declaration of a model's change events and what this run reads of them. #}
{% macro table_in_run(events) -%}
    {%- set table = cdc_lakehouse.change_table(events) -%}
    {%- set bronze, bounds = table['bronze'], cdc_lakehouse.run_bounds() -%}
    {%- set upper = bounds.get(bronze, {}).get('upper', 0) -%}
    {%- set stored = cdc_lakehouse.stored_table(this) if execute else {'columns': {}, 'recorded': {}} -%}
    {%- set read_to = stored['recorded'].get('read_to.' ~ bronze, 0) | int -%}
    {%- set decided = cdc_lakehouse.decided_points() if execute else {} -%}
    {%- set truncates = decided.get('truncates', []) -%}
    {%- set applied = cdc_lakehouse._points(stored['recorded'].get('truncates', '').split()) -%}
    {{ return(dict(
        table,
        is_increment=cdc_lakehouse.reads_increment() and not truncates | reject('in', applied) | list,
        is_kept=execute and load_relation(this) is not none and not should_full_refresh(),
        is_history=cdc_lakehouse.is_history(model),
        read_to=read_to,
        arrived=cdc_lakehouse._arrived_between(read_to, upper),
        until='ingest_batch <= ' ~ upper,
        truncates=truncates,
        snapshots=decided.get('complete_snapshots.' ~ bronze, []),
        markers=bounds.get('complete_snapshots', {}).get('markers', []) | selectattr('table', 'equalto', bronze) | list,
        stored=stored['columns']
    )) }}
{%- endmacro %}
