{#
    What a gold table is computed from: the newest commit of each of its inputs, and its own
    compiled text. Equal states give equal rows. Hudi's time says here only that something changed;
    nothing is ordered by it. Asked before the rows are computed, so that a commit of
    meanwhile is seen by the next run.
#}
{% macro inputs_state(text) -%}
    {%- set states = [local_md5(text)] -%}
    {%- for input in cdc_lakehouse.inputs_of(model) -%}
        {%- set commits = run_query(
            "call show_commits(table => '" ~ input['relation'] ~ "', limit => 1)"
        ) -%}
        {%- do states.append(
            input['name'] ~ '@'
            ~ (commits.columns[0].values()[0] if commits.rows else 'empty')
        ) -%}
    {%- endfor -%}
    {{ return(states | join(' ')) }}
{%- endmacro %}
