{#
    The history of a table (see row_history): the versions of the keys that changed are written
    in one commit; a full refresh replaces all of them in one. Nothing new makes no commit.

    Supports what cdc_merge does, but no `partition_by`. The `unique_key` is history_id.
#}
{% materialization cdc_history, adapter='spark' %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- do cdc_lakehouse._check_config(existing) -%}
    {%- set table = graph.get('cdc_lakehouse.histories', {}).get(model.unique_id) -%}
    {%- set is_increment = existing is not none and not should_full_refresh() -%}
    {%- set reads_increment = cdc_lakehouse.reads_increment() -%}
    {{ run_hooks(pre_hooks) }}

    {%- if reads_increment and (flags.EMPTY or cdc_lakehouse.arrived_in_this_run(table['bronze']) == 'false') -%}
        {%- do store_raw_result('main', message='nothing new', code='', rows_affected=0) -%}
    {%- else -%}
        {%- set rows = cdc_lakehouse.scratch_rows('rows', compiled_code) -%}
        {%- set described = cdc_lakehouse._described_rows(rows, [
            'count(*)', 'count_if(fold_replays)' if reads_increment else '0',
            'count_if(fold_lacks is not null' ~ (' and not fold_replays)' if reads_increment else ')'),
            'count_if(fold_ended)'
        ] | join(', ')) -%}
        {%- set types = described['types'] -%}
        {%- set columns = cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows) -%}
        {%- set state = cdc_lakehouse._versions_to_write(
            table, rows, dict(zip(['rows', 'replays', 'lacking', 'ended'], described['values'])),
            columns, is_increment, reads_increment
        ) -%}
        {%- set stored = cdc_lakehouse.stored_columns(target_relation) -%}
        {%- set dropped = stored.keys() | reject('in', types) | list if is_increment else [] -%}
        {%- if dropped -%}
            {#- what is no longer declared stays with the version that began there, whatever its number -#}
            {%- set began = ['`' ~ table['key'] ~ '`', 'from_epoch', 'from_position', 'valid_from'] -%}
            {%- set with_dropped -%}
                (
                    select versions.*
                    {%- for column in dropped %}, before.`{{ column }}`{% endfor %}
                    from {{ state['rows'] }} as versions
                    left join (
                        select {{ began | join(', ') }}
                        {%- for column in dropped %}, max_by(`{{ column }}`, version_number) as `{{ column }}`{% endfor %}
                        from {{ target_relation }}
                        group by {{ began | join(', ') }}
                    ) as before
                        on {% for each in began %}versions.{{ each }} <=> before.{{ each }}
                        {{- ' and ' if not loop.last }}{% endfor %}
                )
            {%- endset -%}
            {%- do state.update({'rows': with_dropped}) -%}
            {%- for column in dropped -%}{%- do types.update({column: stored[column]}) -%}{%- endfor -%}
            {%- set columns = columns + dropped -%}
        {%- endif -%}
        {%- if (is_increment and state['is_empty']) or (flags.EMPTY and existing) -%}
            {%- do store_raw_result('main', message='nothing new', code='', rows_affected=0) -%}
        {%- else -%}
            {%- call statement('main') -%}
                {%- if state['has_surplus'] -%}
                    {{ cdc_lakehouse._merge_statement(target_relation, state['rows'], columns) }}
                {%- else -%}
                    {{ cdc_lakehouse._insert_statement(
                        target_relation, state['rows'], types, overwrite=not is_increment
                    ) }}
                {%- endif -%}
            {%- endcall -%}
        {%- endif -%}
    {%- endif -%}

    {%- if not flags.EMPTY -%}{%- do cdc_lakehouse._record_progress({}) -%}{%- endif -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
