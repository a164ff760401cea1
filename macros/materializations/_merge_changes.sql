{#
    What the materializations cdc_merge and cdc_history do: the model's rows are merged into its table
    by `unique_key`, in one commit; a full refresh replaces all rows in one. Nothing new makes no
    commit. Of a model that folds change events (see current_rows and row_history) only rows that
    differ from the stored ones are merged, and what is stored of a key does not tell is computed from
    bronze first (see _settled_rows).
#}
{% macro _merge_changes() -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- set fold = cdc_lakehouse._folded_table() -%}
    {%- do cdc_lakehouse._check_config(existing, fold) -%}
    {%- set is_history = cdc_lakehouse.is_history(model) -%}
    {%- set is_increment = cdc_lakehouse.reads_increment() -%}
    {%- set is_kept = cdc_lakehouse.keeps_rows() if fold else is_increment -%}
    {{ run_hooks(pre_hooks) }}

    {%- set found = {} -%}
    {%- set state = {'is_empty': true} -%}
    {%- if not is_increment or (
        not flags.EMPTY and cdc_lakehouse._arrived(cdc_lakehouse.inputs_of(model)) != 'false'
    ) -%}
        {%- set rows = cdc_lakehouse.scratch_rows('rows', fold['query'] if fold else compiled_code) -%}
        {%- set aggregates = {'changed': 'count(*)'} -%}
        {%- do aggregates.update({
            'changed': 'count_if(__cdc_is_changed and __cdc_reason is null)',
            'reasons': 'count_if(__cdc_reason is not null)',
            'kept': 'count_if(__cdc_is_changed and size(__cdc_kept) > 0)',
            'past': "nullif(concat_ws('@', min(__cdc_past).epoch, min(__cdc_past).position), '')",
            'lacking': 'count_if(__cdc_lacks)',
        } if fold else {}) -%}
        {%- if fold and not is_history -%}
            {%- do aggregates.update({'unlisted': 'to_json(array_distinct(flatten(collect_set(__cdc_unlisted_fields))))'}) -%}
        {%- endif -%}
        {%- set described = cdc_lakehouse._described_rows(rows, aggregates) -%}
        {%- set types = described['types'] -%}
        {%- set found = described['found'] -%}
        {%- set record_key = cdc_lakehouse._record_key(types, fold) -%}
        {%- set columns = cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows, record_key) -%}
        {#- Whether a create ever left values out: raised before such a row is stored, and lowered after
            all rows were replaced without one. Only then do rows inherit (see _settled_rows). -#}
        {%- if found.get('lacking') and not flags.EMPTY -%}
            {%- do cdc_lakehouse._record_progress({'carries': 'true'}, has_read=false) -%}
        {%- endif -%}
        {%- set state = cdc_lakehouse._settled_rows(fold, rows, found, columns) if fold
            else {'rows': rows, 'is_empty': found['changed'] == 0, 'kept': false, 'has_surplus': false} -%}
    {%- endif -%}
    {%- if (is_kept and state['is_empty']) or (flags.EMPTY and existing) -%}
        {%- do store_raw_result('main', message='nothing new', code='', rows_affected=0) -%}
    {%- else -%}
        {%- if is_history and is_kept -%}
            {%- do cdc_lakehouse._keep_removed_columns(fold, state, types, columns) -%}
        {%- endif -%}
        {%- call statement('main') -%}
            {%- if state['has_surplus'] -%}
                {{ cdc_lakehouse._merge_statement(target_relation, state['rows'], columns) }}
            {%- else -%}
                {{ cdc_lakehouse._insert_statement(
                    target_relation, state['rows'], types, record_key, overwrite=not is_kept, kept=state['kept']
                ) }}
            {%- endif -%}
        {%- endcall -%}
    {%- endif -%}

    {%- set arrived = cdc_lakehouse.arrived_in_this_run(fold['bronze'])
        if fold and not is_history and is_increment and state['is_empty'] and not flags.EMPTY else none -%}
    {%- if not flags.EMPTY -%}
        {%- do cdc_lakehouse._record_progress({'carries': 'false'} if fold and not (is_kept or found['lacking']) else {}) -%}
    {%- endif -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}

    {%- for field in (fromjson(found['unlisted']) | sort if found.get('unlisted') and not flags.EMPTY else []) -%}
        {%- do exceptions.warn(
            "model '" ~ fold['name'] ~ "' does not list the field '"
            ~ (field if field.isprintable() else field | tojson)
            ~ "' that its events have: cdc-lakehouse diff says whether its column is new,"
            ~ " renamed, dropped or generated; 'ignored_fields' under meta has those that no column"
            ~ ' holds (docs/models.md, When the source changes)'
        ) -%}
    {%- endfor -%}
    {%- if arrived -%}{%- do cdc_lakehouse._warn_of_a_restored_source(fold, arrived) -%}{%- endif -%}
    {{ return({'relations': [target_relation]}) }}
{%- endmacro %}
