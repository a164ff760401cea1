-- Northwind's eleven base tables. A key that changes takes its references along, and an
-- order takes its lines along when it is deleted; everything else that is still referred
-- to cannot be deleted.

create schema datalake;

create table datalake.region (
    region_id smallint primary key,
    region_description text not null
);

create table datalake.territories (
    territory_id text primary key,
    territory_description text not null,
    region_id smallint not null references datalake.region on update cascade
);

create table datalake.employees (
    employee_id smallint primary key,
    last_name text not null,
    first_name text not null,
    title text,
    title_of_courtesy text,
    birth_date date,
    hire_date date,
    address text,
    city text,
    region text,
    postal_code text,
    country text,
    home_phone text,
    extension text,
    photo bytea,
    notes text,
    reports_to smallint references datalake.employees on update cascade,
    photo_path text
);

create table datalake.employee_territories (
    employee_id smallint not null references datalake.employees on update cascade,
    territory_id text not null references datalake.territories on update cascade,
    primary key (employee_id, territory_id)
);

create table datalake.customers (
    customer_id bpchar primary key,
    company_name text not null,
    contact_name text,
    contact_title text,
    address text,
    city text,
    region text,
    postal_code text,
    country text,
    phone text,
    fax text
);

create table datalake.shippers (
    shipper_id smallint primary key,
    company_name text not null,
    phone text
);

create table datalake.suppliers (
    supplier_id smallint primary key,
    company_name text not null,
    contact_name text,
    contact_title text,
    address text,
    city text,
    region text,
    postal_code text,
    country text,
    phone text,
    fax text,
    homepage text
);

create table datalake.categories (
    category_id smallint primary key,
    category_name text not null,
    description text,
    picture bytea
);

create table datalake.products (
    product_id smallint primary key,
    product_name text not null,
    supplier_id smallint references datalake.suppliers on update cascade,
    category_id smallint references datalake.categories on update cascade,
    quantity_per_unit text,
    unit_price real,
    units_in_stock smallint,
    units_on_order smallint,
    reorder_level smallint,
    discontinued integer not null
);

create table datalake.orders (
    order_id smallint primary key,
    customer_id bpchar references datalake.customers on update cascade,
    employee_id smallint references datalake.employees on update cascade,
    order_date date,
    required_date date,
    shipped_date date,
    ship_via smallint references datalake.shippers on update cascade,
    freight real,
    ship_name text,
    ship_address text,
    ship_city text,
    ship_region text,
    ship_postal_code text,
    ship_country text
);

create table datalake.order_details (
    order_id smallint not null
        references datalake.orders on update cascade on delete cascade,
    product_id smallint not null references datalake.products on update cascade,
    unit_price real not null,
    quantity smallint not null,
    discount real not null,
    primary key (order_id, product_id)
);

-- From each referenced row to the rows that refer to it: the way the outbox's triggers and
-- the foreign keys go. (Orders to their lines, employees to their territories: primary keys.)
create index on datalake.orders (customer_id);
create index on datalake.orders (employee_id);
create index on datalake.orders (ship_via);
create index on datalake.order_details (product_id);
create index on datalake.products (supplier_id);
create index on datalake.products (category_id);
create index on datalake.employees (reports_to);
create index on datalake.employee_territories (territory_id);
create index on datalake.territories (region_id);
