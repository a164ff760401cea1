{# Drop the days of raw events that are older than the retention, if no full refresh needs them. #}
{% macro drop_old_bronze_days() -%}
    {%- set given = var('cdc_lakehouse_bronze_retention', 'for ever') | string -%}
    {%- set age = modules.re.findall('^([0-9]+) days?$', given) -%}
    {%- do exceptions.raise_compiler_error("variable 'cdc_lakehouse_bronze_retention' is '" ~ given ~ "'; it is '90 days', say, or 'for ever'") if not age and given != 'for ever' -%}
    {%- set limit = (modules.datetime.datetime.now(modules.pytz.utc) - modules.datetime.timedelta(days=age | first | default(0) | int)).strftime('%Y-%m-%d') -%}
    {%- for source in graph.sources.values() if age and source.source_name == 'bronze' and source.name != 'rejected_events' -%}
        {%- set bronze, readers, needing = source.schema ~ '.' ~ source.name, [], [] -%}
        {%- do cdc_lakehouse.run_statement('refresh table ' ~ bronze) -%}
        {%- set old = run_query(
            "select concat_ws(' ', array_sort(collect_set(ingest_date))) as days, max(ingest_batch) as newest, count_if(op = 't') as truncates,"
            " (select count(*) from (select max(ingest_date) as last_date, min(ingest_date) as first_date from {0} where op = 'r' and source_position is not null group by source_epoch,"
            " source_position) where first_date < '{1}' and last_date >= '{1}') as snapshots from {0} where ingest_date < '{1}'".format(bronze, limit)).rows[0] -%}
        {%- do needing.append('they hold a truncate, or part of a snapshot') if old['truncates'] or old['snapshots'] -%}
        {%- for node in graph.nodes.values() if old['days'] and not needing and node.resource_type == 'model' and node.name != 'rejected_rows'
            and source.unique_id in cdc_lakehouse.reads_of(node)['tables'] and node.config.materialized not in ['staging_view', 'ephemeral'] -%}
            {%- set name, stored = node.schema ~ '.' ~ node.alias, cdc_lakehouse.stored_table(node) -%}
            {%- set views = graph.nodes.values() | selectattr('unique_id', 'in', node.depends_on.nodes) | selectattr('config.meta.columns') | list -%}
            {%- set whole = cdc_lakehouse.change_table(api.Relation.create(schema=views[0].schema, identifier=views[0].alias)) if views else {'columns': {}} -%}
            {%- set columns = whole['columns'].keys() | list + cdc_lakehouse.position_columns() + ['carried_columns', 'cdc_state', '_hoodie_key'] -%}
            {%- do readers.append(name) -%}
            {%- if views | length != 1 or cdc_lakehouse.reads_of(node)['tables'] | length != 1 or cdc_lakehouse.is_history(node)
                or 'cdc_state' not in stored['columns'] or stored['columns'].keys() | reject('in', columns) | list -%}
                {%- do needing.append(name ~ ' is built from all of them') -%}
            {%- elif stored['recorded'].get('read_to.' ~ source.name, 0) | int < old['newest'] -%}
                {%- do needing.append(name ~ ' is not up to date') -%}
            {%- else -%}
                {#- a full refresh without them: of their keys, and of those that a complete snapshot lacked, or that inherit values -#}
                {%- do whole.update(is_increment=false, is_kept=false, is_history=false, markers=[], until="ingest_date >= '%s'" % limit,
                    truncates=cdc_lakehouse._points(stored['recorded'].get('truncates', '').split()),
                    snapshots=cdc_lakehouse._points(stored['recorded'].get('complete_snapshots.' ~ source.name, '').split())) -%}
                {%- set key, of_keys = '`' ~ whole['key'] ~ '`', "(select each.* from {4} as each left semi join (select {0} from {1} where ingest_date < '{2}' union all select {0} from {3}"
                    " where is_deleted and op = 'r' or exists(carried_columns, entry -> entry.sequence.op = 'c')) as wanted on each.{0} = wanted.{0})" -%}
                {%- set events = cdc_lakehouse._run_events(of_keys.format(key, whole['events'], limit, name, whole['events']), whole) -%}
                {%- set compared = columns | select('in', stored['columns']) | reject('in', ['ingested_at', 'ingest_batch', 'cdc_state', '_hoodie_key']) | list -%}
                {%- set query -%}
                    select count(*) as number from {{ of_keys.format(key, whole['events'], limit, name, name) }} as held
                    full outer join (select * from ({{ cdc_lakehouse._current_rows(whole, '(%s)' % cdc_lakehouse.row_states(events, whole)) }}) where not is_deleted) as made on held.{{ key }} = made.{{ key }}
                    where made.{{ key }} is not null and coalesce(held.is_deleted, true) or not held.is_deleted and (made.__cdc_reason is not null
                        or not struct(held.`{{ compared | join('`, held.`') }}`) <=> struct(made.`{{ compared | join('`, made.`') }}`))
                {%- endset -%}
                {%- set early = "select count(*) as number from %s where not is_deleted and ingest_batch < %s000000000" % (name, limit.replace('-', '')) -%}
                {%- set number = run_query(early).rows[0]['number'] or run_query(query).rows[0]['number'] -%}
                {%- do needing.append('rows of ' ~ name ~ ' come from them: ' ~ number) if number -%}
            {%- endif -%}
        {%- endfor -%}
        {%- do needing.append('no model reads them') if not readers -%}
        {%- set days = ((old['days'] or '') | string).split() -%}
        {%- do cdc_lakehouse.run_statement("alter table %s drop partition (ingest_date = '%s')" % (bronze, days | join("'), partition (ingest_date = '")))
            if days and not needing -%}
        {{ log(('kept ' if needing else 'dropped ') ~ days[0] ~ ' to ' ~ days[-1] ~ ' of ' ~ bronze ~ (': ' ~ needing[0] if needing else ''), info=true) if days }}
    {%- endfor -%}
{%- endmacro %}
