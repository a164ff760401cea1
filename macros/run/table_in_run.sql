{#
    The declaration of a model's change events (see change_table) and what this run reads of them:
    `is_increment`, `is_kept` (its table stays) and `is_history`; `arrived` and `until`, true for
    what arrived in this run and up to its bound; `truncates` to apply; `snapshots`, the complete ones, with
    their `markers`; `stored`, the columns of its table. A truncate that the table has not applied yet may
    end any row: then this is no increment.
#}
{% macro table_in_run(events) -%}
    {%- set table = cdc_lakehouse.change_table(events) -%}
    {%- set bronze = table['bronze'] -%}
    {%- set bounds = cdc_lakehouse.run_bounds() if execute else {} -%}
    {%- set truncates = cdc_lakehouse.decided_truncates('apply') if execute else [] -%}
    {%- set applied = cdc_lakehouse._points(cdc_lakehouse.progress(this).get('truncates', '').split()) -%}
    {{ return(dict(
        table,
        is_increment=cdc_lakehouse.reads_increment() and not truncates | reject('in', applied) | list,
        is_kept=cdc_lakehouse.keeps_rows(),
        is_history=cdc_lakehouse.is_history(model),
        arrived=cdc_lakehouse.arrived_in_this_run(bronze),
        until=cdc_lakehouse.arrived_until_this_run(bronze),
        truncates=truncates,
        snapshots=cdc_lakehouse.complete_snapshots(bronze) if execute else [],
        markers=bounds.get('complete_snapshots', {}).get('markers', []) | selectattr('table', 'equalto', bronze) | list,
        stored=cdc_lakehouse.stored_columns(this) if execute else {}
    )) }}
{%- endmacro %}
