{# Print a table's timeline, newest first, and the files that a query reads (docs/storage.md). #}
{% macro show_commits(table, limit=20) -%}
    {%- set commits = run_query(
        "call show_commits(table => '" ~ table ~ "', limit => " ~ limit ~ ')'
    ) -%}
    {{ print(table ~ ': ' ~ commits.rows | length ~ ' commits, newest first') }}
    {{ print('commit             action          written bytes  rows written  updated  partitions') }}
    {%- for row in commits.rows -%}
        {{ print('%-18s %-13s %15s %13s %8s %11s' | format(
            row['commit_time'], row['action'], row['total_bytes_written'], row['total_records_written'],
            row['total_update_records_written'], row['total_partitions_written']
        )) }}
    {%- endfor -%}
    {%- set files = run_query("call show_fsview_latest(table => '" ~ table ~ "')") -%}
    {{ print(files.rows | length ~ ' file groups') }}
    {{ print(' base bytes  logs  log bytes  base file') }}
    {%- for row in files.rows -%}
        {{ print('%11s %5s %10s  %s' | format(
            row['data_file_size'], row['num_delta_files'], row['total_delta_file_size'],
            row['data_file'].split('/' ~ table.split('.')[1] ~ '/')[-1]
        )) }}
    {%- endfor -%}
{%- endmacro %}
