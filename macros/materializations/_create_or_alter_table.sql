{#
    Make sure that a table exists and has the columns of the rows to write, as
    `on_schema_change` says; the list of these. Columns named `__cdc_…` or `_hoodie_…` are not of
    the table. With `append_new_columns` a number's type is widened, too: what the narrower one
    could not hold is null until a full refresh.

    The table is created empty: a `create table as select` that is killed leaves files that no
    catalogue knows, and the next one refuses to go there. Before a column is added, a delete of
    nothing rolls back unfinished commits: after Hudi's commit of the column, their rollback
    would end every build (HoodieRollbackException). Hudi changes a type only while
    `hoodie.schema.on.read.enable` is set; its readers need no such setting.
#}
{% macro _create_or_alter_table(relation, existing, types, rows, record_key) -%}
    {%- set partition = config.get('partition_by') -%}
    {%- set wanted = {} -%}
    {%- for column, type in types.items() if not column.startswith(('__cdc_', '_hoodie_')) and column != partition -%}
        {%- do wanted.update({column: type}) -%}
    {%- endfor -%}
    {%- if partition -%}
        {%- if types.get(partition) != 'string' -%}
            {{ exceptions.raise_compiler_error(
                "model '" ~ model.name ~ "': setting 'partition_by' is " ~ partition
                ~ ', which is ' ~ types.get(partition, 'no column of it')
                ~ '; it is the name of a column of text'
            ) }}
        {%- endif -%}
        {#- Spark has it last -#}
        {%- do wanted.update({partition: 'string'}) -%}
    {%- endif -%}
    {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent('select `' ~ wanted | join('`, `') ~ '` from ' ~ rows) -%}
    {%- endif -%}
    {%- set stored = cdc_lakehouse.stored_columns(relation) -%}
    {%- set mode = config.get('on_schema_change', 'ignore') -%}
    {%- set added = [] -%}
    {%- set widened = [] -%}
    {%- for column, type in wanted.items() -%}
        {%- if column not in stored -%}
            {%- do added.append('`' ~ column ~ '` ' ~ type) -%}
        {%- elif stored[column] != type.split('<')[0] -%}
            {%- set change = stored[column] ~ ' to ' ~ type -%}
            {%- set decimal = 'decimal\\((\\d+),(\\d+)\\)' -%}
            {%- set digits = modules.re.fullmatch(decimal ~ ' to ' ~ decimal, change) -%}
            {%- set digits = digits.groups() | map('int') | list if digits else [] -%}
            {%- set is_wider = change == 'int to bigint' or (
                digits and digits[0] - digits[1] <= digits[2] - digits[3] and digits[1] <= digits[3]
            ) -%}
            {%- if not is_wider or mode != 'append_new_columns' -%}
                {{ exceptions.raise_compiler_error(
                    relation ~ ': column ' ~ column ~ ' is ' ~ stored[column] ~ ' in the table and ' ~ type
                    ~ ' in the model. Drop the table and build it again: dbt run-operation drop_table'
                    ~ " --args '{table: " ~ relation.schema ~ '.' ~ relation.identifier ~ "}' (docs/runbook.md)"
                ) }}
            {%- endif -%}
            {%- do widened.append('alter table ' ~ relation ~ ' alter column `' ~ column ~ '` type ' ~ type) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not existing -%}
        {%- set options = dict(config.get('options') or {}, primaryKey=record_key) -%}
        {%- if record_key == '_hoodie_key' -%}{%- do added.insert(0, '_hoodie_key string') -%}{%- endif -%}
        {%- call statement('create_table') -%}
            create table if not exists {{ relation }} ({{ added | join(', ') }})
            {{ file_format_clause() }}
            options (
                {%- for name, value in options.items() -%}
                    {{ name }} '{{ value }}'{{ ', ' if not loop.last }}
                {%- endfor -%}
            )
            {{ partition_cols(label='partitioned by') }}
            {{ location_clause() }}
            tblproperties (
                {%- for name, value in cdc_lakehouse._table_properties().items() -%}
                    '{{ name }}' = '{{ value }}'{{ ', ' if not loop.last }}
                {%- endfor -%}
            )
        {%- endcall -%}
    {%- elif mode == 'fail' and (added or stored.keys() | reject('in', wanted) | list) -%}
        {{ exceptions.raise_compiler_error(
            relation ~ ' has the columns ' ~ stored | join(', ') ~ '; the model yields '
            ~ wanted | join(', ') ~ ' (on_schema_change: fail)'
        ) }}
    {%- elif mode == 'append_new_columns' and (added or widened) -%}
        {%- set wider = ['set hoodie.schema.on.read.enable = true'] + widened
            + ['set hoodie.schema.on.read.enable = false'] -%}
        {%- set more = ['alter table ' ~ relation ~ ' add columns (' ~ added | join(', ') ~ ')'] -%}
        {%- for sql in ['delete from ' ~ relation ~ ' where false']
            + (wider if widened else []) + (more if added else []) -%}
            {%- do cdc_lakehouse.run_statement(sql) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if not existing or mode == 'append_new_columns' -%}
        {%- do stored.update(wanted) -%}
        {%- if partition -%}{%- do stored.update({partition: stored.pop(partition)}) -%}{%- endif -%}
    {%- endif -%}
    {{ return(wanted | select('in', stored) | list) }}
{%- endmacro %}
