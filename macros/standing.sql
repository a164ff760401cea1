{#
    How a change event stands to the stored row of its key: 'newer', 'older' or 'unclear'.

    The stored row knows only its own position. Where LSN and Kafka offset agree, that is
    enough; where they do not (a snapshot read against a streamed event), or where an older
    event may hold a value that the stored row's event left out, only the key's whole
    history tells, and it is folded again from bronze.

    Used between `event` (change events) and `stored` (rows of the silver table).
#}
{% macro standing() -%}
case
    when event.source_epoch < stored.source_epoch then 'older'
    {# a row that a complete snapshot lacked so far, and a read that brings it after all #}
    when
        event.op = 'r'
        and not event.is_deleted
        and stored.op = 'r'
        and stored.is_deleted
        and event.source_epoch = stored.source_epoch
        then 'unclear'
    {# the event that the row has already, delivered once more #}
    when
        event.source_epoch = stored.source_epoch
        and (event.op = 'r') = (stored.op = 'r')
        and (
            event.source_lsn = stored.source_lsn
            or (event.op = 'r' and event.changed_at = stored.changed_at)
        )
        then
            case
                when coalesce(event.kafka_offset >= stored.kafka_offset, true) then 'older'
                else 'unclear'
            end
    {# a create after a key change: what it lacks is in the old key's row #}
    when event.op = 'c' and size(event.unavailable_columns) > 0 then 'unclear'
    when stored.op is null or event.source_epoch > stored.source_epoch then 'newer'
    {# both streamed: the LSN decides #}
    when event.op <> 'r' and stored.op <> 'r' and event.source_lsn > stored.source_lsn
        then 'newer'
    when event.op <> 'r' and stored.op <> 'r'
        then {{ older_than_stored() }}
    {# a snapshot read on either side, and no offsets to go by #}
    when event.kafka_offset is null or stored.kafka_offset is null
        then
            case
                when coalesce(event.source_lsn, -1) > coalesce(stored.source_lsn, -1)
                    then 'newer'
                when coalesce(event.source_lsn, -1) < coalesce(stored.source_lsn, -1)
                    then {{ older_than_stored() }}
                else 'unclear'
            end
    when event.kafka_offset = stored.kafka_offset then 'older'
    {# a read delivered again would look newer than a change that it does not hold #}
    when
        event.kafka_offset > stored.kafka_offset
        and coalesce(event.source_lsn > stored.source_lsn, true)
        and (
            event.op <> 'r' or coalesce(event.changed_at > stored.changed_at, false)
        )
        then 'newer'
    when
        event.kafka_offset < stored.kafka_offset
        and (event.source_lsn is null or event.source_lsn <= stored.source_lsn)
        and (event.op = 'r' or stored.op <> 'r')
        then {{ older_than_stored() }}
    else 'unclear'
end
{%- endmacro %}
