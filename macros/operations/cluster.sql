{#
    Rewrite the small files of a table into larger ones (docs/storage.md). Not with a bucket
    index, whose files are its buckets: Hudi would plan it, fail, and refuse every upsert from
    then on.
#}
{% macro cluster(table) -%}
    {%- for row in run_query('show tblproperties ' ~ table).rows
        if row[0] == 'hoodie.index.type' and row[1] | upper == 'BUCKET' -%}
        {{ exceptions.raise_compiler_error(
            table ~ ' has a bucket index: its files cannot be clustered'
        ) }}
    {%- endfor -%}
    {%- set done = run_query(
        "call run_clustering(op => 'scheduleAndExecute', table => '" ~ table ~ "')"
    ) -%}
    {%- set groups = done.rows | map(attribute='input_group_size') | map('int') | sum -%}
    {{ print('clustered ' ~ table ~ ': ' ~ groups ~ ' groups of files') }}
{%- endmacro %}
