{#
    A silver table: the model's rows are merged into it by `unique_key`, in one commit. A full
    refresh replaces all rows, in one commit too. Nothing new makes no commit.

    The model sees with `reads_increment()` whether it builds on the table. Where it folds change
    events (see current_rows), only rows that differ from the stored ones are merged, and the
    keys that a row does not tell about are folded from their history first.

    Supports `unique_key`, `partition_by`, `tblproperties`, `on_schema_change` (ignore,
    append_new_columns, fail), contracts, grants, hooks, `--full-refresh` and `--empty`, which
    creates the table and changes no row.
#}
{% materialization cdc_merge, adapter='spark' %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- do cdc_lakehouse._check_config(existing) -%}
    {%- set is_increment = cdc_lakehouse.reads_increment() -%}
    {{ run_hooks(pre_hooks) }}

    {%- set arrived = [] -%}
    {%- for input in cdc_lakehouse.inputs_of(model) if is_increment -%}
        {%- do arrived.append(cdc_lakehouse.arrived_in_this_run(input['name'])) -%}
    {%- endfor -%}
    {%- if is_increment and (flags.EMPTY or not arrived | reject('equalto', 'false') | list) -%}
        {%- do store_raw_result('main', message='nothing new', code='', rows_affected=0) -%}
    {%- else -%}
        {%- set rows = cdc_lakehouse.scratch_rows('rows', compiled_code) -%}
        {%- set is_fold = model.unique_id in graph.get('cdc_lakehouse.folds', {}) -%}
        {%- set asked = 'count(*)' -%}
        {%- if is_fold and is_increment -%}
            {%- set asked = 'count_if(fold_changed and not fold_replays), count_if(fold_replays),'
                ~ ' count_if(fold_changed and size(fold_kept) > 0), min(fold_late), min(fold_deleted)' -%}
        {%- elif is_fold -%}
            {%- set asked = 'count(*), count_if(fold_replays)' -%}
        {%- endif -%}
        {%- set described = cdc_lakehouse._described_rows(rows, asked) -%}
        {%- set types = described['types'] -%}
        {%- set columns = cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows) -%}
        {%- set state = {'rows': rows, 'is_empty': described['values'][0] == 0, 'kept': false} -%}
        {%- if is_fold -%}
            {%- do state.update(cdc_lakehouse._rows_to_write(
                rows, described['values'], columns, is_increment
            )) -%}
        {%- endif -%}
        {%- if (is_increment and state['is_empty']) or (flags.EMPTY and existing) -%}
            {%- do store_raw_result('main', message='nothing new', code='', rows_affected=0) -%}
        {%- else -%}
            {#- a table of an earlier version -#}
            {%- set upsert = 'hoodie.spark.sql.insert.into.operation' -%}
            {%- if is_increment and upsert ~ '=upsert' not in existing.information -%}
                {%- do cdc_lakehouse.run_statement(
                    'alter table ' ~ target_relation ~ " set tblproperties ('" ~ upsert ~ "' = 'upsert')"
                ) -%}
            {%- endif -%}
            {%- call statement('main') -%}
                {{ cdc_lakehouse._insert_statement(
                    target_relation, state['rows'], types,
                    overwrite=not is_increment, kept=state['kept']
                ) }}
            {%- endcall -%}
        {%- endif -%}
    {%- endif -%}

    {%- if not flags.EMPTY -%}{%- do cdc_lakehouse.record_progress() -%}{%- endif -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
