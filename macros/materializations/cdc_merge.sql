{#
    A silver table: the model's rows are merged into it by `unique_key`, in one commit; a full
    refresh replaces all rows in one. Nothing new makes no commit. Of a model that folds change
    events (see current_rows) only rows that differ from the stored ones are merged, and what a
    row does not tell is replayed first.

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

    {%- set state = {'is_empty': true} -%}
    {%- if not is_increment or (
        not flags.EMPTY and cdc_lakehouse._arrived(cdc_lakehouse.inputs_of(model)) != 'false'
    ) -%}
        {%- set rows = cdc_lakehouse.scratch_rows('rows', compiled_code) -%}
        {%- set fold = graph.get('cdc_lakehouse.folds', {}).get(model.unique_id) -%}
        {%- set aggregates = ['count(*)'] -%}
        {%- if fold -%}
            {%- set aggregates = ([
                'count_if(fold_changed and not fold_replays)', 'count_if(fold_replays)',
                'count_if(fold_changed and size(fold_kept) > 0)',
                "nullif(concat_ws('@', min(fold_late).epoch, min(fold_late).position), '')",
                "nullif(concat_ws('@', min(fold_deleted).epoch, min(fold_deleted).position), '')"
            ] if is_increment else ['count(*)', 'count_if(fold_replays)', '0', 'null', 'null'])
            + [
                'to_json(array_distinct(flatten(collect_set(fold_unlisted_fields))))',
                "count_if(exists(carried_columns, entry -> entry.place.op = 'c'))"
            ] -%}
        {%- endif -%}
        {%- set key = config.get('unique_key') -%}
        {%- do aggregates.append('count_if(cast(`' ~ key ~ "` as string) = '')") -%}
        {%- set described = cdc_lakehouse._described_rows(rows, aggregates | join(', ')) -%}
        {%- set types, counts = described['types'], described['values'] -%}
        {%- if counts[-1] and cdc_lakehouse._record_key(this, types) == key -%}
            {{ exceptions.raise_compiler_error(
                this ~ ' was built by an earlier version, which cannot store a row whose ' ~ key
                ~ ' is the empty text. Drop the table and build it again: dbt run-operation drop_table'
                ~ " --args '{table: " ~ this.schema ~ '.' ~ this.identifier ~ "}' (docs/runbook.md)"
            ) }}
        {%- endif -%}
        {%- set columns = cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows) -%}
        {#- Whether a value of a create is carried anywhere: raised before such a row is stored, and
            lowered after all rows were replaced without one. Only then can rows wait (_rows_to_write). -#}
        {%- set carries = fold and (counts[1] or counts[6]) -%}
        {%- if carries and not flags.EMPTY -%}
            {%- do cdc_lakehouse._record_progress({'carries': 'true'}, has_read=false) -%}
        {%- endif -%}
        {%- set state = cdc_lakehouse._rows_to_write(fold, rows, counts, columns, is_increment) if fold
            else {'rows': rows, 'is_empty': counts[0] == 0, 'kept': false} -%}
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
                target_relation, state['rows'], types, overwrite=not is_increment, kept=state['kept']
            ) }}
        {%- endcall -%}
    {%- endif -%}

    {%- set arrived = cdc_lakehouse.arrived_in_this_run(fold['bronze'])
        if fold and is_increment and state['is_empty'] and not flags.EMPTY else none -%}
    {%- if not flags.EMPTY -%}
        {%- do cdc_lakehouse._record_progress({'carries': 'false'} if fold and not (is_increment or carries) else {}) -%}
    {%- endif -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}

    {%- for field in (fromjson(counts[5]) | sort if fold and not flags.EMPTY else []) -%}
        {%- do exceptions.warn(
            "model '" ~ fold['name'] ~ "' does not list the field '"
            ~ (field if field.isprintable() else field | tojson)
            ~ "' that its events have: cdc-lakehouse diff says whether its column is new,"
            ~ " renamed, dropped or generated; 'ignored_fields' under meta has those that no column"
            ~ ' holds (docs/models.md, When the source changes)'
        ) -%}
    {%- endfor -%}
    {#- every event lost: redelivered ones do, and those of a restored source, whose log starts again
        below what is stored. No event but the increment's is parsed. -#}
    {%- if arrived -%}
        {%- set query -%}
            select count(*) from (
                select 1 from {{ cdc_lakehouse.bronze_events(fold['bronze_relation']) | indent(16) }} as seen
                left semi join (
                    select source_position, source_epoch from {{ fold['events'] }}
                    where `{{ fold['key'] }}` is not null and {{ arrived }}
                ) as lost
                    on seen.source_epoch = lost.source_epoch and seen.source_position <=> lost.source_position
                where {{ cdc_lakehouse.arrived_until_this_run(fold['bronze']) }}
                group by key, source_position, source_epoch
                having every({{ arrived }})
                    and max(kafka_offset) > (select coalesce(max(kafka_offset), -1) from {{ this }})
            )
        {%- endset -%}
        {%- set unseen = run_query(query).rows[0][0] -%}
        {%- if unseen -%}
            {%- do exceptions.warn(
                unseen ~ ' new events of bronze.' ~ fold['bronze']
                ~ ' arrived at higher offsets, and all of them are older than the rows'
                ~ ' of ' ~ this ~ '. If the source was restored, raise the epoch of'
                ~ ' its topic in topics.toml (docs/runbook.md)'
            ) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
