{# A silver table, or a history: the model's rows are merged into it by `unique_key`, in one commit. #}
{% materialization cdc_merge, adapter='spark' %}
    {%- set target_relation, existing = this.incorporate(type='table'), load_relation(this) -%}
    {%- set is_history, folds = cdc_lakehouse.is_history(model), [] -%}
    {%- for id in model.depends_on.nodes if id in graph.nodes -%}
        {%- set node = graph.nodes[id] -%}
        {%- set events = api.Relation.create(schema=node.schema, identifier=node.alias) -%}
        {%- set is_plain = compiled_code.split() | join(' ') == 'select * from ' ~ events -%}
        {%- if 'columns' in node.config.meta and 'key' in node.config.meta
            and (is_plain or '__cdc_reason' in compiled_code) -%}
            {%- do folds.append(dict(cdc_lakehouse.table_in_run(events), query=compiled_code if not is_plain else
                cdc_lakehouse.row_history(events) if is_history else cdc_lakehouse.current_rows(events))) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set fold = folds | first | default(none) -%}
    {%- do cdc_lakehouse._check_config(existing, fold) -%}
    {%- set is_increment = fold['is_increment'] if fold else cdc_lakehouse.reads_increment() -%}
    {%- set is_kept = fold['is_kept'] if fold else is_increment -%}
    {{ run_hooks(pre_hooks) }}

    {%- set found, types, state = {}, {}, {'is_empty': true} -%}
    {%- if not is_increment or (not flags.EMPTY and cdc_lakehouse.arrived_in_this_run() != 'false') -%}
        {%- set rows = cdc_lakehouse.scratch_rows('rows', fold['query'] if fold else compiled_code) -%}
        {%- set lowest = 'min(if(__cdc_reason is null, __cdc_past, __cdc_lowest))' -%}
        {%- set counted = ['count_if(__cdc_is_changed and __cdc_reason is null) as changed',
            'count_if(__cdc_reason is not null) as reasons',
            'count_if(__cdc_is_changed and size(__cdc_kept) > 0) as kept',
            ("nullif(concat_ws('@', {0}.epoch, {0}.position), '')".format(lowest) if is_increment else 'null') ~ ' as past',
            'count_if(__cdc_lacks) as lacking',
            ('null' if is_history else
                'to_json(array_distinct(flatten(flatten(collect_set(__cdc_fields)))))') ~ ' as fields',
        ] if fold else ['count(*) as changed'] -%}
        {%- do counted.append('typeof(first(struct(*))) as types') -%}
        {%- set found, parts = run_query('select ' ~ counted | join(', ') ~ ' from ' ~ rows).rows[0], [] -%}
        {%- for part in found['types'].removeprefix('struct<').removesuffix('>').split(',') -%}
            {%- do parts.append(part) -%}
            {%- set column, _, type = (parts | join(',')).partition(':') -%}
            {%- if type.count('<') == type.count('>') and type.count('(') == type.count(')') -%}
                {%- do types.update({column: type}) -%}
                {%- do parts.clear() -%}
            {%- endif -%}
        {%- endfor -%}
        {%- set columns = cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows, fold) -%}
        {#- Whether a create ever left values out: raised before such a row is stored, and lowered after
            all rows were replaced without one. Only then do rows inherit (see _settled_rows). -#}
        {%- do cdc_lakehouse._record({'carries': 'true'}) if found.get('lacking') and not flags.EMPTY -%}
        {%- set state = cdc_lakehouse._settled_rows(fold, rows, found, columns) if fold
            else {'rows': rows, 'is_empty': found['changed'] == 0, 'kept': false, 'has_surplus': false} -%}
    {%- endif -%}
    {%- if (is_kept and state['is_empty']) or (flags.EMPTY and existing) -%}
        {%- do store_raw_result('main', message='nothing new', code='', rows_affected=0) -%}
    {%- else -%}
        {%- call statement('main') -%}
            {{ cdc_lakehouse._history_statement(target_relation, fold, state, types)
                if is_history and is_kept else cdc_lakehouse._insert_statement(
                    target_relation, state['rows'], types, overwrite=not is_kept, kept=state['kept']) }}
        {%- endcall -%}
    {%- endif -%}

    {%- if not flags.EMPTY -%}
        {%- set values = {'carries': 'false'} if fold and not (is_kept or found['lacking']) else {} -%}
        {%- for input in cdc_lakehouse.inputs_of(model) -%}
            {%- for name, batch in input['upper'].items() -%}
                {%- do values.update({'read_to.' ~ name: batch | string}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- for name, points in cdc_lakehouse.decided_points().items() -%}
            {%- do values.update({name: points | map('join', '@') | join(' ')}) -%}
        {%- endfor -%}
        {%- do cdc_lakehouse._record(values) -%}
    {%- endif -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}

    {%- for field in (fromjson(found['fields']) | sort if found.get('fields') and not flags.EMPTY else []) -%}
        {%- do exceptions.warn("model '" ~ fold['name'] ~ "' does not list the field '"
            ~ (field if field.isprintable() else field | tojson) ~ "' that its events have: cdc-lakehouse diff says"
            ~ " whether its column is new, renamed, dropped or generated; 'ignored_fields' under meta has those that no"
            ~ ' column holds (docs/models.md, When the source changes)') -%}
    {%- endfor -%}
    {#- Every event lost, as redelivered ones do, and those of a restored source, whose log starts again below what is
        stored. No event but the increment's is parsed. -#}
    {%- if fold and is_increment and found and state['is_empty'] and not is_history -%}
        {%- set query -%}
            select count(*) as number from (
                select 1 from {{ fold['bronze_relation'] }} as seen
                left semi join (
                    select source_position, source_epoch from {{ fold['events'] }}
                    where `{{ fold['key'] }}` is not null and {{ fold['arrived'] }}
                ) as lost
                    on seen.source_epoch = lost.source_epoch and seen.source_position <=> lost.source_position
                where {{ fold['until'] }}
                group by key, source_position, source_epoch
                having every({{ fold['arrived'] }})
                    and max(kafka_offset) > (select coalesce(max(kafka_offset), -1) from {{ this }})
            )
        {%- endset -%}
        {%- set unseen = run_query(query).rows[0]['number'] -%}
        {%- do exceptions.warn(
            unseen ~ ' new events of bronze.' ~ fold['bronze'] ~ ' arrived at higher offsets, and all of them are'
            ~ ' older than the rows of ' ~ this ~ '. If the source was restored, raise the epoch of its topic in'
            ~ ' topics.toml (docs/runbook.md)') if unseen -%}
    {%- endif -%}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
