create schema shop;
create table shop.orders (
    order_id int primary key, customer text, body text, amount numeric(10, 2)
);
-- What is stored out of line is not in the log again when another column changes.
alter table shop.orders alter column body set storage external;
create table shop.signals (id text primary key, type text, data text);
create function shop.new_body() returns text language sql as $$
    select string_agg(md5(random()::text), '') from generate_series(1, 94)
$$;
insert into shop.orders select key, 'ALFKI', shop.new_body(), key from generate_series(1, 12) as key;

-- What the rows became, as triggers see it; without a body where there is none any more.
create schema kept;
create table kept.changes (
    like shop.orders,
    by xid default pg_current_xact_id()::xid,
    -- Behind the change's own record in the log, and before the next one of the row.
    position pg_lsn not null default pg_current_wal_insert_lsn(),
    number bigserial
);
insert into kept.changes select *, null from shop.orders;
create view kept.versions as
select * from (
    select
        order_id, customer, body, amount,
        floor(extract(epoch from pg_xact_commit_timestamp(by)) * 1000)::bigint as valid_from,
        floor(
            extract(epoch from pg_xact_commit_timestamp(lead(by) over of_a_row)) * 1000
        )::bigint as valid_to,
        lpad(to_hex((position - '0/0')::bigint), 16, '0') as position,
        number,
        lead(number) over of_a_row is null as is_current
    from kept.changes
    window of_a_row as (partition by order_id order by number)
) as every where body is not null;
create function kept.note() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and old is not distinct from new then
        return null;
    end if;
    if tg_op = 'TRUNCATE' then
        insert into kept.changes (order_id) select order_id from kept.versions where is_current;
    elsif tg_op = 'DELETE' or old.order_id <> new.order_id then
        insert into kept.changes (order_id) values (old.order_id);
    end if;
    if tg_op in ('INSERT', 'UPDATE') then
        insert into kept.changes select new.*;
    end if;
    return null;
end $$;
create trigger note after insert or update or delete on shop.orders
    for each row execute function kept.note();
create trigger note_all after truncate on shop.orders execute function kept.note();
