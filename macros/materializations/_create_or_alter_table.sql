{#
    Make sure that a table is there and has the columns of the rows to write, as
    `on_schema_change` says; the list of the columns to write. `types` maps name to type; what
    starts with `fold_` is not of the table (see folded_rows).

    The table is created before it is filled: a `create table as select` that is killed leaves
    files that no catalogue knows, and the next one refuses to go there. Hudi records a new
    column in a commit of its own, and does not look for unfinished ones before it; rolled
    back later, behind that commit, they would end every build (HoodieRollbackException). A
    delete of nothing rolls them back.
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
        {%- do get_assert_columns_equivalent(
            'select `' ~ wanted | join('`, `') ~ '` from ' ~ rows
        ) -%}
    {%- endif -%}
    {%- set definitions = [] -%}
    {%- if not existing -%}
        {%- for column, type in wanted.items() -%}
            {%- do definitions.append('`' ~ column ~ '` ' ~ type) -%}
        {%- endfor -%}
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
    {%- set stored = cdc_lakehouse.stored_columns(relation) -%}
    {%- set added = [] -%}
    {%- for column, type in wanted.items() -%}
        {%- if column not in stored -%}
            {%- do added.append(column) -%}
            {%- do definitions.append('`' ~ column ~ '` ' ~ type) -%}
        {%- elif stored[column] != type.split('<')[0] -%}
            {%- do cdc_lakehouse.stop_at_type_change(relation, column, stored[column], type) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set mode = config.get('on_schema_change', 'ignore') -%}
    {%- if mode == 'fail' and (added or stored.keys() | reject('in', wanted) | list) -%}
        {{ exceptions.raise_compiler_error(
            relation ~ ' has the columns ' ~ stored | join(', ') ~ '; the model yields '
            ~ wanted | join(', ') ~ ' (on_schema_change: fail)'
        ) }}
    {%- elif mode == 'append_new_columns' and added -%}
        {%- do cdc_lakehouse.run_statement('delete from ' ~ relation ~ ' where false') -%}
        {%- do cdc_lakehouse.run_statement(
            'alter table ' ~ relation ~ ' add columns (' ~ definitions | join(', ') ~ ')'
        ) -%}
        {%- for column in added -%}{%- do stored.update({column: wanted[column]}) -%}{%- endfor -%}
        {%- if partition -%}{%- do stored.update({partition: stored.pop(partition)}) -%}{%- endif -%}
        {{ return(wanted.keys() | list) }}
    {%- endif -%}
    {{ return(wanted.keys() | reject('in', added) | list) }}
{%- endmacro %}
