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
insert into visits select seq, 'old' from seq_101_to_130;
insert into customers select concat('C', seq), concat('Käse ', seq), repeat('n', seq)
    from seq_1_to_60;
insert into orders (order_id, customer_id, ordered_on, reference)
    select seq, concat('C', 1 + seq % 60), date '2026-01-01' + interval seq day,
        18446744073709551615 - seq
    from seq_1_to_300;
insert into order_lines select seq, 1 + seq % 7, seq % 5, seq / 8 from seq_1_to_300;
insert into offers (offer_id, part, customer_id, size) values (1, 2, 'C60', 1.5);
