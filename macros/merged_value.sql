{#
    What the merge writes to a column: the incoming value, or the stored one where the
    incoming row asks for it (`<` behind the column's name in `carried_columns`). A snapshot
    read without an LSN keeps that of the event it follows.
#}
{% macro merged_value(column, columns, some_unknown) -%}
    {%- if column == 'source_lsn' -%}
        case
            when incoming.op = 'r' and incoming.source_epoch = stored.source_epoch
                then coalesce(incoming.source_lsn, stored.source_lsn)
            else incoming.source_lsn
        end
    {%- elif not some_unknown or column in position_columns() -%}
        incoming.`{{ column }}`
    {%- elif column == 'carried_columns' -%}
        filter(array(
            {%- for name in columns if name not in position_columns() + ['carried_columns'] %}
            case
                when not array_contains(incoming.carried_columns, '{{ name }}<') then
                    case
                        when array_contains(incoming.carried_columns, '{{ name }}') then '{{ name }}'
                        when array_contains(incoming.carried_columns, '{{ name }}?') then '{{ name }}?'
                    end
                when
                    stored.is_deleted
                    or array_contains(stored.carried_columns, '{{ name }}?')
                    then '{{ name }}?'
                else '{{ name }}'
            end
            {{- ',' if not loop.last }}
            {%- endfor %}
        ), name -> name is not null)
    {%- else -%}
        case
            when array_contains(incoming.carried_columns, '{{ column }}<') then stored.`{{ column }}`
            else incoming.`{{ column }}`
        end
    {%- endif -%}
{%- endmacro %}
