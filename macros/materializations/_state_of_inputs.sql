{#
    A text for the state of all that this model's rows are made from: equal texts, equal rows. Of
    the model and of the views that it reads it is their text, of each table the newest commit; of
    a source some more, as its writers may commit in another order than they began.

    `unknown` where nothing tells: a table is not Hudi's, the model names no table by `ref` or
    `source`, or a text asks for the time or for chance. A table that is named in the text alone,
    and what a function of one's own reads, is not seen (docs/models.md).
#}
{% macro _state_of_inputs() -%}
    {%- set inputs = cdc_lakehouse.inputs_of(model) -%}
    {%- set formats = [] -%}
    {%- for input in inputs -%}
        {%- set node = graph.nodes.get(input['id']) -%}
        {%- set is_hudi = input['is_bronze'] or (
            node.config.file_format == 'hudi' if node else (load_relation(input['relation']) or {}).is_hudi
        ) -%}
        {%- do formats.append('hudi' if is_hudi else 'other') -%}
    {%- endfor -%}
    {%- set texts = [compiled_code] -%}
    {%- for view in cdc_lakehouse._reads(model)['views'] -%}
        {%- set text = run_query('show create table ' ~ view).rows[0][0] -%}
        {%- do texts.append(modules.re.sub("'transient_lastDdlTime' = '\\d+'", '', text)) -%}
    {%- endfor -%}
    {%- set text = texts | join('\n') -%}
    {%- set volatile = "(?i)\\b(current_(date|timestamp)|localtimestamp)\\b"
        ~ "|\\b(now|curdate|unix_timestamp|rand|randn|random|uuid|shuffle)\\s*\\("
        ~ "|\\b(date|timestamp)\\s*'\\s*(now|today|tomorrow|yesterday)\\b" -%}
    {%- if formats | unique | list != ['hudi'] or modules.re.search(volatile, text) -%}
        {{ return('unknown') }}
    {%- endif -%}
    {%- set state = [local_md5(text)] -%}
    {%- for input in inputs -%}
        {%- set commits = run_query(
            "call show_commits(table => '" ~ input['relation'] ~ "', limit => "
            ~ (1 if input['id'] in graph.nodes else 10) ~ ')'
        ).columns[0].values() -%}
        {%- do state.append(input['name'] ~ '@' ~ (commits | join(',') or 'empty')) -%}
    {%- endfor -%}
    {{ return(state | join(' ')) }}
{%- endmacro %}
