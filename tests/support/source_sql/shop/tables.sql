-- A shop in MariaDB, whose rows a storm changes.
create table customers (
    customer_id varchar(10) primary key,
    name varchar(80) not null,
    notes mediumtext
);
create table orders (
    order_id int unsigned primary key,
    customer_id varchar(10),
    ordered_on date,
    shipped_at datetime(6),
    freight decimal(10,2),
    state enum('new', 'packed', 'sent') not null default 'new',
    flags set('gift', 'fragile', 'express'),
    reference bigint unsigned,
    details json,
    updated_at timestamp(3) not null default current_timestamp(3)
        on update current_timestamp(3)
);
create table order_lines (
    order_id int unsigned,
    product_id smallint unsigned,
    quantity int unsigned not null,
    unit_price decimal(12,4) not null,
    primary key (order_id, product_id)
);
create table visits (visit_id int primary key, note varchar(10));
-- It has what `add` tells of a catalogue.
create table offers (
    offer_id int unsigned,
    part int,
    customer_id varchar(10) comment 'Who asked',
    size decimal(10,2),
    twice decimal(11,2) as (size * 2),
    primary key (part, offer_id),
    constraint offers_customer foreign key (customer_id)
        references customers (customer_id) on delete cascade
);
insert into visits select seq, 'old' from seq_31_to_60;
insert into customers select concat('C', seq), concat('Käse ', seq), repeat('n', seq)
    from seq_1_to_60;
insert into orders (order_id, customer_id, ordered_on, reference)
    select seq, concat('C', 1 + seq % 60), date '2026-01-01' + interval seq day,
        18446744073709551615 - seq
    from seq_1_to_300;
insert into order_lines select seq, 1 + seq % 7, seq % 5, seq / 8 from seq_1_to_300;
insert into offers (offer_id, part, customer_id, size) values (1, 2, 'C60', 1.5);

-- What the visits became, and in which second, as triggers see it; without a note where there
-- is none any more.
create database kept;
create table kept.changes (
    visit_id int, note varchar(10), at bigint, number int auto_increment primary key
);
insert into kept.changes (visit_id, note) select * from visits;
create trigger noted after insert on visits for each row
    insert into kept.changes (visit_id, note, at)
    values (new.visit_id, new.note, unix_timestamp());
create trigger removed after delete on visits for each row
    insert into kept.changes (visit_id, at) values (old.visit_id, unix_timestamp());
create trigger changed after update on visits for each row
    insert into kept.changes (visit_id, note, at)
    select old.visit_id, null, unix_timestamp() from dual where new.visit_id <> old.visit_id
    union all
    select new.visit_id, new.note, unix_timestamp() from dual
    where new.visit_id <> old.visit_id or new.note <> old.note;
-- No version begins after the next one.
create view kept.versions as
with begun as (
    select visit_id, note, number, if(at is null, null, 1000 * min(at) over (
        partition by visit_id order by number rows between current row and unbounded following
    )) as valid_from
    from kept.changes
), ended as (
    select *, lead(valid_from) over (partition by visit_id order by number) as valid_to
    from begun
)
select * from ended where note is not null;
