{#
    Merge the rows of a silver model into its table, guarded by position.

    The model has dropped what would change nothing; where no row is left, there is no
    merge and no commit. Rows with the operation `?` stand for keys that must be folded
    again from their whole history. A full refresh replaces all rows in one commit.

    The guard repeats what the model made sure of: of two streamed events the one with the
    lower LSN never wins. A snapshot read has its place by its history, which only the model
    knows. It stands in the clause and not in the join's condition, where Hudi takes only
    equalities.

    Takes the place of dbt-spark's macro of this name (1.11.0, materializations/
    incremental/strategies.sql), which has no guard.
#}
{% macro spark__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
    {%- if nothing_arrived() -%}
        {{ return("select 'nothing new' as outcome") }}
    {%- endif -%}
    {%- set columns = adapter.get_columns_in_relation(source) | map(attribute='name') | list -%}
    {%- set has_position = 'carried_columns' in columns -%}
    {%- set rows = source.identifier -%}
    {%- if not reads_increment() -%}
        {%- set rows = settled_rows(
            rows, "exists(carried_columns, name -> name like '%?')", columns
        ) if has_position else rows -%}
        insert overwrite table {{ target }}
        select {{ target_columns(source, target) | join(', ') }}
        from {{ rows }}
    {%- else -%}
        {%- set rows = settled_rows(rows, "op = '?'", columns) if has_position else rows -%}
        {%- set counts = run_query(
            'select count(*), '
            ~ ("count_if(exists(carried_columns, name -> name like '%<'))"
               if has_position else '0')
            ~ ' from ' ~ rows
        ).rows[0] -%}
        {%- if counts[0] == 0 -%}
            select 'nothing new' as outcome
        {%- else -%}
            merge into {{ target }} as stored
            using {{ rows }} as incoming
                on stored.{{ unique_key }} = incoming.{{ unique_key }}
            when matched
            {%- if has_position %}
                and (
                    incoming.source_epoch > stored.source_epoch
                    or (
                        incoming.source_epoch = stored.source_epoch
                        and (
                            coalesce(incoming.source_lsn, -1) >= coalesce(stored.source_lsn, -1)
                            or incoming.op = 'r'
                            or stored.op = 'r'
                        )
                    )
                )
            {%- endif %}
                then update set
            {%- for column in columns %}
                `{{ column }}` = {{ merged_value(column, columns, counts[1] > 0) }}
                {{- ',' if not loop.last }}
            {%- endfor %}
            when not matched then insert ({{ columns | join(', ') }}) values (
            {%- for column in columns %}
                {%- if column == 'carried_columns' and (counts[1] > 0) %}
                transform(incoming.carried_columns, name -> replace(name, '<', '?'))
                {%- else %}
                incoming.`{{ column }}`
                {%- endif %}
                {{- ',' if not loop.last }}
            {%- endfor %}
            )
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
