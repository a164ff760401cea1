{#
    The columns of a silver row, from a newest version (see newest_versions).

    A column of which no value is known is null, and stands in `carried_columns` with a mark:
    `?` where a later event brings it (the row began with a key change, and the old key's row
    has not been seen), and `unknown_in_life` where the row lived before these events: `<`
    asks the merge for the stored value. `former` names a relation that holds the values of
    the key's former row, if there is one.
#}
{% macro row_columns(table, unknown_in_life, former=none) -%}
{%- set names = table['columns'] | reject('equalto', table['key']) | list -%}
        {%- for column in table['columns'] %}
        {%- if column == table['key'] %}
        `{{ column }}`,
        {%- elif former %}
        coalesce(`known_{{ column }}`, {{ former }}.`former_{{ column }}`).value as `{{ column }}`,
        {%- else %}
        `known_{{ column }}`.value as `{{ column }}`,
        {%- endif %}
        {%- endfor %}
        op,
        is_deleted,
        source_epoch,
        case
            when op = 'r' and source_lsn is null then last_lsn
            when op = 'r' and kafka_offset is not null then lsn_before
            else source_lsn
        end as source_lsn,
        kafka_offset,
        changed_at,
        ingested_at,
        {%- if former %}
        greatest(newest_batch, {{ former }}.former_batch) as ingest_batch,
        {%- else %}
        newest_batch as ingest_batch,
        {%- endif %}
        filter(array(
            {%- for column in names %}
            case
                when not array_contains(unavailable_columns, '{{ column }}') then null
                when `known_{{ column }}` is not null then '{{ column }}'
                {%- if former %}
                when {{ former }}.`former_{{ column }}` is not null then '{{ column }}'
                {%- endif %}
                when life_start is null then '{{ column ~ unknown_in_life }}'
                else '{{ column }}?'
            end{{ ',' if not loop.last }}
            {%- endfor %}
        ), column_name -> column_name is not null) as carried_columns
{%- endmacro %}
