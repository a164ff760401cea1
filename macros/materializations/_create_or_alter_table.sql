{#
    Make sure that a table exists and has the columns of the rows to write, as
    `on_schema_change` says; the list of these. Columns named `fold_…` are not of the table. With
    `append_new_columns` a number's type is widened, too: what the narrower one could not hold is
    null until a full refresh.

    The table is created empty: a `create table as select` that is killed leaves files that no
    catalogue knows, and the next one refuses to go there. Before a column is added, a delete of
    nothing rolls back unfinished commits: after Hudi's commit of the column, their rollback
    would end every build (HoodieRollbackException). Hudi changes a type only while
    `hoodie.schema.on.read.enable` is set; its readers need no such setting.
#}
{% macro _create_or_alter_table(relation, existing, types, rows) -%}
    {%- set wanted = {} -%}
    {%- for column, type in types.items() if not column.startswith('fold_') -%}
        {%- do wanted.update({column: type}) -%}
    {%- endfor -%}
    {%- set partition = config.get('partition_by') -%}
    {%- if partition -%}
        {%- if wanted.get(partition) != 'string' -%}
            {{ exceptions.raise_compiler_error(
                "model '" ~ model.name ~ "': setting 'partition_by' is " ~ partition
                ~ ', which is ' ~ wanted.get(partition, 'no column of it')
                ~ '; it is the name of a column of text'
            ) }}
        {%- endif -%}
        {#- Spark has it last -#}
        {%- do wanted.update({partition: wanted.pop(partition)}) -%}
    {%- endif -%}
    {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent('select `' ~ wanted | join('`, `') ~ '` from ' ~ rows) -%}
    {%- endif -%}
    {%- set stored = cdc_lakehouse.stored_columns(relation) if existing else {} -%}
    {%- set mode = config.get('on_schema_change', 'ignore') -%}
    {%- set added = [] -%}
    {%- set definitions = [] -%}
    {%- set widened = {} -%}
    {%- for column, type in wanted.items() -%}
        {%- if column not in stored -%}
            {%- do added.append(column) -%}
            {%- do definitions.append('`' ~ column ~ '` ' ~ type) -%}
        {%- elif stored[column] != type.split('<')[0] -%}
            {%- set digits = [] -%}
            {%- for each in [stored[column], type] -%}
                {%- set found = modules.re.fullmatch('decimal\\((\\d+),(\\d+)\\)', each) -%}
                {%- do digits.append([found[1] | int - found[2] | int, found[2] | int] if found) -%}
            {%- endfor -%}
            {%- set is_wider = [stored[column], type] == ['int', 'bigint']
                or (digits[0] and digits[1] and digits[0][0] <= digits[1][0] and digits[0][1] <= digits[1][1]) -%}
            {%- if not is_wider or mode != 'append_new_columns' -%}
                {%- do cdc_lakehouse.stop_at_type_change(relation, column, stored[column], type) -%}
            {%- endif -%}
            {%- do widened.update({column: type}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not existing -%}
        {%- call statement('create_table') -%}
            create table if not exists {{ relation }} ({{ definitions | join(', ') }})
            {{ file_format_clause() }}
            {{ options_clause() }}
            {{ partition_cols(label='partitioned by') }}
            {{ location_clause() }}
            tblproperties (
                {%- for name, value in cdc_lakehouse._table_properties().items() -%}
                    '{{ name }}' = '{{ value }}'{{ ', ' if not loop.last }}
                {%- endfor -%}
            )
        {%- endcall -%}
        {%- do graph.setdefault('cdc_lakehouse.columns', {}).update({relation | string: wanted}) -%}
        {{ return(wanted.keys() | list) }}
    {%- endif -%}
    {%- if mode == 'fail' and (added or stored.keys() | reject('in', wanted) | list) -%}
        {{ exceptions.raise_compiler_error(
            relation ~ ' has the columns ' ~ stored | join(', ') ~ '; the model yields '
            ~ wanted | join(', ') ~ ' (on_schema_change: fail)'
        ) }}
    {%- elif mode == 'append_new_columns' and (added or widened) -%}
        {%- do cdc_lakehouse.run_statement('delete from ' ~ relation ~ ' where false') -%}
        {%- if widened -%}
            {%- do cdc_lakehouse.run_statement('set hoodie.schema.on.read.enable = true') -%}
            {%- for column, type in widened.items() -%}
                {%- do cdc_lakehouse.run_statement(
                    'alter table ' ~ relation ~ ' alter column `' ~ column ~ '` type ' ~ type
                ) -%}
            {%- endfor -%}
            {%- do cdc_lakehouse.run_statement('set hoodie.schema.on.read.enable = false') -%}
        {%- endif -%}
        {%- if added -%}
            {%- do cdc_lakehouse.run_statement(
                'alter table ' ~ relation ~ ' add columns (' ~ definitions | join(', ') ~ ')'
            ) -%}
        {%- endif -%}
        {%- for column in widened.keys() | list + added -%}
            {%- do stored.update({column: wanted[column]}) -%}
        {%- endfor -%}
        {%- if partition -%}{%- do stored.update({partition: stored.pop(partition)}) -%}{%- endif -%}
        {{ return(wanted.keys() | list) }}
    {%- endif -%}
    {{ return(wanted.keys() | reject('in', added) | list) }}
{%- endmacro %}
