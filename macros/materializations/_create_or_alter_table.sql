{# Make sure that a table exists and has the columns of the rows to write; the list of these. #}
{% macro _create_or_alter_table(relation, existing, types, rows, fold=none) -%}
    {%- set key, partition = config.get('unique_key'), config.get('partition_by') -%}
    {%- if partition and types.get(partition) != 'string' -%}
        {%- do exceptions.raise_compiler_error(
            "model '" ~ model.name ~ "': setting 'partition_by' is " ~ partition ~ ', which is '
            ~ types.get(partition, 'no column of it') ~ '; it is the name of a column of text') -%}
    {%- elif config.get('recompute_by') and config.get('recompute_by') not in types -%}
        {%- do exceptions.raise_compiler_error("model '" ~ model.name ~ "': setting 'recompute_by' is "
            ~ config.get('recompute_by') ~ ', which is no column of it') -%}
    {%- endif -%}
    {%- set wanted = {} -%}
    {%- for column, type in types.items() if not column.startswith(('__cdc_', '_hoodie_')) -%}
        {%- do wanted.update({column: type}) -%}
    {%- endfor -%}
    {#- Spark has the column of partitions last -#}
    {%- if partition -%}{%- do wanted.update({partition: wanted.pop(partition)}) -%}{%- endif -%}
    {%- do get_assert_columns_equivalent('select `' ~ wanted | join('`, `') ~ '` from ' ~ rows)
        if config.get('contract').enforced -%}
    {%- set stored = cdc_lakehouse.stored_table(relation)['columns'] -%}
    {%- set mode, added, widened = config.get('on_schema_change', 'ignore'), [], [] -%}
    {%- for column, type in wanted.items() if stored.get(column) != type.split('<')[0] -%}
        {%- set change = stored[column] ~ ' to ' ~ type -%}
        {%- set digits = modules.re.findall('\\d+', change) | map('int') | list -%}
        {%- set is_wider = change == 'int to bigint' or (change.count('decimal(') == 2
            and digits[0] - digits[1] <= digits[2] - digits[3] and digits[1] <= digits[3]) -%}
        {%- if column not in stored -%}
            {%- do added.append('`' ~ column ~ '` ' ~ type) -%}
        {%- elif is_wider and mode == 'append_new_columns' -%}
            {%- do widened.append('alter table ' ~ relation ~ ' alter column `' ~ column ~ '` type ' ~ type) -%}
        {%- else -%}
            {%- do exceptions.raise_compiler_error(
                relation ~ ': column ' ~ column ~ ' is ' ~ stored[column] ~ ' in the table and ' ~ type
                ~ ' in the model. Drop the table and build it again: dbt run-operation drop_table'
                ~ " --args '{table: " ~ relation.schema ~ '.' ~ relation.identifier ~ "}' (docs/runbook.md)") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not existing -%}
        {#- Spark's threads share the map of a table's files, and two that fill it lose some (apache/hudi#9289): filled
            before the first query sees it -#}
        {%- set options = dict({'hoodie.datasource.read.file.index.listing.mode': 'eager'}, **(config.get('options') or {})) -%}
        {%- do options.update(primaryKey=key) -%}
        {%- if types[key] == 'string' and not cdc_lakehouse.is_history(model)
            and (not fold or (not fold['key_columns'] and fold['columns'][key] in ['string', 'bpchar'])) -%}
            {%- do options.update(primaryKey='_hoodie_key') -%}
            {%- do added.insert(0, '_hoodie_key string') -%}
            {%- do stored.update(_hoodie_key='string') -%}
        {%- endif -%}
        {%- call statement('create_table') -%}
            create table if not exists {{ relation }} ({{ added | join(', ') }})
            {{ file_format_clause() }}
            options ('{{ options.items() | map('join', "' '") | join("', '") }}')
            {{ partition_cols(label='partitioned by') }}
            {{ location_clause() }}
            tblproperties ('{{ cdc_lakehouse.table_properties().items() | map('join', "' = '") | join("', '") }}')
        {%- endcall -%}
    {%- elif mode == 'fail' and (added or stored.keys() | reject('in', wanted) | list not in [[], ['_hoodie_key']]) -%}
        {%- do exceptions.raise_compiler_error(
            relation ~ ' has the columns ' ~ stored | join(', ') ~ '; the model yields '
            ~ wanted | join(', ') ~ ' (on_schema_change: fail)') -%}
    {%- elif mode == 'append_new_columns' and (added or widened) -%}
        {%- set setting = 'set hoodie.schema.on.read.enable = ' -%}
        {%- set wider = [setting ~ 'true'] + widened + [setting ~ 'false'] if widened else [] -%}
        {%- set more = ['alter table ' ~ relation ~ ' add columns (' ~ added | join(', ') ~ ')'] if added else [] -%}
        {%- for sql in ['delete from ' ~ relation ~ ' where false'] + wider + more -%}
            {%- do cdc_lakehouse.run_statement(sql) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do stored.update(wanted if not existing or mode == 'append_new_columns' else {}) -%}
    {%- if partition -%}{%- do stored.update({partition: stored.pop(partition)}) -%}{%- endif -%}
    {{ return(wanted | select('in', stored) | list) }}
{%- endmacro %}
