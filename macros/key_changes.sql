{#
    The relation of the key changes of a table, up to the bound of the run, that left values
    out: `former_key` and `later_key`, which share an epoch and an LSN. None where there are
    no such changes.

    Runs statements, once for a model of a run: the events are read for it.
#}
{% macro key_changes(events, table) -%}
{%- set memory = run_memory('key_changes') -%}
{%- if this | string not in memory -%}
    {%- set name = this.identifier ~ '__key_changes' -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set query -%}
        select former_key, later_key
        from (
            select
                collect_set(case when op = 'd' then {{ key }} end) as former_keys,
                collect_set(case when op = 'c' then {{ key }} end) as later_keys
            from {{ events }}
            where
                rejection is null
                and {{ arrived_until_this_run(table['bronze']) }}
                and (op = 'd' or (op = 'c' and size(unavailable_columns) > 0))
            group by source_epoch, source_lsn
        )
        lateral view explode(former_keys) as former_key
        lateral view explode(later_keys) as later_key
    {%- endset -%}
    {%- do create_scratch_view(name, query) -%}
    {%- set found = run_query('select 1 from ' ~ name ~ ' limit 1').rows | length -%}
    {%- do memory.update({this | string: name if found else none}) -%}
{%- endif -%}
{{ return(memory[this | string]) }}
{%- endmacro %}
