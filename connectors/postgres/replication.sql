-- What Debezium reads, and as whom. The role's password is set by the loader.

-- Updates and deletes bring the whole old row: nothing has to be guessed about a TOASTed
-- value that did not change.
alter table datalake.categories replica identity full;
alter table datalake.customers replica identity full;
alter table datalake.employee_territories replica identity full;
alter table datalake.employees replica identity full;
alter table datalake.order_details replica identity full;
alter table datalake.orders replica identity full;
alter table datalake.products replica identity full;
alter table datalake.region replica identity full;
alter table datalake.shippers replica identity full;
alter table datalake.suppliers replica identity full;
alter table datalake.territories replica identity full;
alter table datalake.cdc_events replica identity full;

-- `cdc-lakehouse resync` inserts into a signal table: each connector has its own, and
-- reads it from the write-ahead log only.
create table datalake.debezium_signals_outbox (
    id varchar(42) primary key, type varchar(32) not null, data varchar(2048)
);
create table datalake.debezium_signals_tables (
    id varchar(42) primary key, type varchar(32) not null, data varchar(2048)
);

-- A snapshot that was asked for also selects from this table: which table it read, and how
-- many rows that had. Its only row gives the topic a first record.
create table datalake.complete_snapshots (
    id text primary key, topic text, bronze_table text, row_count bigint
);
insert into datalake.complete_snapshots (id) values ('first');

create publication datalake for table
    datalake.categories,
    datalake.customers,
    datalake.employee_territories,
    datalake.employees,
    datalake.order_details,
    datalake.orders,
    datalake.products,
    datalake.region,
    datalake.shippers,
    datalake.suppliers,
    datalake.territories,
    datalake.cdc_events,
    datalake.complete_snapshots,
    datalake.debezium_signals_outbox,
    datalake.debezium_signals_tables;

-- Roles belong to the server: one that is there already, from another load, is kept. What
-- it has is not given again, as only a superuser may alter a role that replicates. On RDS
-- nobody is one: there, members of rds_replication may replicate.
do $$
begin
    if not exists (select from pg_catalog.pg_roles where rolname = 'debezium') then
        create role debezium;
    end if;

    if not (select rolcanlogin from pg_catalog.pg_roles where rolname = 'debezium') then
        alter role debezium login;
    end if;

    if exists (select from pg_catalog.pg_roles where rolname = 'rds_replication') then
        if not pg_catalog.pg_has_role('debezium', 'rds_replication', 'member') then
            grant rds_replication to debezium;
        end if;
    elsif not (
        select rolreplication from pg_catalog.pg_roles where rolname = 'debezium'
    ) then
        alter role debezium replication;
    end if;
end
$$;

-- It reads the tables of the publication but the signals, and nothing else. It writes
-- nothing: the publication is made here, and heartbeats need no table of their own.
grant usage on schema datalake to debezium;
grant select on
    datalake.categories,
    datalake.customers,
    datalake.employee_territories,
    datalake.employees,
    datalake.order_details,
    datalake.orders,
    datalake.products,
    datalake.region,
    datalake.shippers,
    datalake.suppliers,
    datalake.territories,
    datalake.cdc_events,
    datalake.complete_snapshots
to debezium;
