-- The outbox: one row an order, with everything that the order shows.
--
-- Triggers note which orders a statement concerns, whichever of the base tables it wrote.
-- At commit, the rows of all orders that the transaction concerns are computed anew, in one
-- statement; what differs is written. So a transaction makes at most one event an order, a
-- complete one, and none where nothing changed that the order shows.

create table datalake.cdc_events (
    order_id smallint primary key,
    customer_id bpchar,
    order_date date,
    required_date date,
    shipped_date date,
    order_items jsonb,
    products jsonb,
    customer jsonb,
    employee jsonb,
    shipper jsonb,
    shipment jsonb,
    updated_at timestamptz not null
);

-- What the outbox has to hold. Columns are named one by one, so that a new column of a base
-- table does not make all rows of the outbox out of date.
create view datalake.order_events as
select
    orders.order_id,
    orders.customer_id,
    orders.order_date,
    orders.required_date,
    orders.shipped_date,
    lines.order_items,
    lines.products,
    case
        when customers.customer_id is not null
            then jsonb_build_object(
                'customer_id', customers.customer_id,
                'company_name', customers.company_name,
                'contact_name', customers.contact_name,
                'contact_title', customers.contact_title,
                'address', customers.address,
                'city', customers.city,
                'region', customers.region,
                'postal_code', customers.postal_code,
                'country', customers.country,
                'phone', customers.phone,
                'fax', customers.fax
            )
    end as customer,
    case
        when employees.employee_id is not null
            then jsonb_build_object(
                'employee_id', employees.employee_id,
                'last_name', employees.last_name,
                'first_name', employees.first_name,
                'title', employees.title,
                'title_of_courtesy', employees.title_of_courtesy,
                'birth_date', employees.birth_date,
                'hire_date', employees.hire_date,
                'address', employees.address,
                'city', employees.city,
                'region', employees.region,
                'postal_code', employees.postal_code,
                'country', employees.country,
                'home_phone', employees.home_phone,
                'extension', employees.extension,
                'photo', employees.photo,
                'notes', employees.notes,
                'reports_to', employees.reports_to,
                'photo_path', employees.photo_path,
                'territories', sales_area.territories
            )
    end as employee,
    case
        when shippers.shipper_id is not null
            then jsonb_build_object(
                'shipper_id', shippers.shipper_id,
                'company_name', shippers.company_name,
                'phone', shippers.phone
            )
    end as shipper,
    jsonb_build_object(
        'freight', orders.freight,
        'ship_name', orders.ship_name,
        'ship_address', orders.ship_address,
        'ship_city', orders.ship_city,
        'ship_region', orders.ship_region,
        'ship_postal_code', orders.ship_postal_code,
        'ship_country', orders.ship_country
    ) as shipment

from datalake.orders

left join datalake.customers
    on orders.customer_id = customers.customer_id

left join datalake.employees
    on orders.employee_id = employees.employee_id

left join datalake.shippers
    on orders.ship_via = shippers.shipper_id

left join lateral (
    select
        jsonb_agg(
            jsonb_build_object(
                'territory_id', territories.territory_id,
                'territory_description', territories.territory_description,
                'region_id', region.region_id,
                'region_description', region.region_description
            )
            order by territories.territory_id collate "C"
        ) as territories

    from datalake.employee_territories

    join datalake.territories
        on employee_territories.territory_id = territories.territory_id

    join datalake.region
        on territories.region_id = region.region_id

    where employee_territories.employee_id = employees.employee_id
) as sales_area on true

left join lateral (
    select
        jsonb_agg(
            jsonb_build_object(
                'product_id', order_details.product_id,
                'unit_price', order_details.unit_price,
                'quantity', order_details.quantity,
                'discount', order_details.discount
            )
            order by order_details.product_id
        ) as order_items,
        jsonb_agg(
            jsonb_build_object(
                'product_id', products.product_id,
                'product_name', products.product_name,
                'quantity_per_unit', products.quantity_per_unit,
                'unit_price', products.unit_price,
                'units_in_stock', products.units_in_stock,
                'units_on_order', products.units_on_order,
                'reorder_level', products.reorder_level,
                'discontinued', products.discontinued,
                'supplier_id', products.supplier_id,
                'company_name', suppliers.company_name,
                'contact_name', suppliers.contact_name,
                'contact_title', suppliers.contact_title,
                'address', suppliers.address,
                'city', suppliers.city,
                'region', suppliers.region,
                'postal_code', suppliers.postal_code,
                'country', suppliers.country,
                'phone', suppliers.phone,
                'fax', suppliers.fax,
                'homepage', suppliers.homepage,
                'category_id', products.category_id,
                'category_name', categories.category_name,
                'description', categories.description,
                'picture', categories.picture
            )
            order by order_details.product_id
        ) as products

    from datalake.order_details

    join datalake.products
        on order_details.product_id = products.product_id

    left join datalake.suppliers
        on products.supplier_id = suppliers.supplier_id

    left join datalake.categories
        on products.category_id = categories.category_id

    where order_details.order_id = orders.order_id
) as lines on true;

-- What the open transactions have changed: for each statement the orders it concerns, and
-- the rows that an order refers to since then. Empty whenever nobody writes; a crash may
-- empty it too, because it ends those transactions.
create unlogged table datalake.changed_orders (
    transaction_id xid8 not null default pg_current_xact_id(),
    order_ids smallint[] not null,
    customer_ids bpchar[] not null,
    employee_ids smallint[] not null,
    shipper_ids smallint[] not null,
    product_ids smallint[] not null,
    is_first boolean not null
);

create index on datalake.changed_orders (transaction_id);

-- All functions below run as their owner: who may write an order needs no rights on the
-- outbox. The search path is fixed, and so is what the text of a number or of bytes in JSON
-- would follow otherwise: the writer's session.

-- Note what a statement changed, for the end of the transaction.
create function datalake.note_change(
    order_ids smallint[],
    customer_ids bpchar[] default '{}',
    employee_ids smallint[] default '{}',
    shipper_ids smallint[] default '{}',
    product_ids smallint[] default '{}'
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(order_ids) = 0 then
        return;
    end if;

    -- A transaction that keeps its first snapshot cannot see an order that came in since,
    -- and would leave it as it was: an error is better than a row that is wrong for ever.
    if current_setting('transaction_isolation') not in (
        'read committed', 'read uncommitted'
    ) then
        raise exception
            'the outbox cannot follow a change made in a % transaction',
            current_setting('transaction_isolation')
            using
                errcode = 'feature_not_supported',
                hint = 'Write the tables of schema datalake in read committed transactions.';
    end if;

    -- One call at commit is enough, that of the first row. While a later row is there, so
    -- is the first one: a rollback to a savepoint that takes the first takes what came
    -- after it, too. Once a call has taken all rows away, the next one is a first again.
    insert into datalake.changed_orders (
        order_ids, customer_ids, employee_ids, shipper_ids, product_ids, is_first
    )
    values (
        order_ids,
        customer_ids,
        employee_ids,
        shipper_ids,
        product_ids,
        not exists (
            select from datalake.changed_orders
            where transaction_id = pg_current_xact_id()
        )
    );
end
$$;

create function datalake.note_orders()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    case tg_op
        when 'INSERT' then
            perform datalake.note_change(
                order_ids => array(select order_id from new_rows),
                customer_ids => array(select distinct customer_id from new_rows),
                employee_ids => array(select distinct employee_id from new_rows),
                shipper_ids => array(select distinct ship_via from new_rows)
            );
        when 'UPDATE' then
            perform datalake.note_change(
                order_ids => array(
                    select order_id from old_rows
                    union
                    select order_id from new_rows
                ),
                customer_ids => array(
                    select customer_id from (
                        select order_id, customer_id from new_rows
                        except
                        select order_id, customer_id from old_rows
                    ) as linked
                ),
                employee_ids => array(
                    select employee_id from (
                        select order_id, employee_id from new_rows
                        except
                        select order_id, employee_id from old_rows
                    ) as linked
                ),
                shipper_ids => array(
                    select ship_via from (
                        select order_id, ship_via from new_rows
                        except
                        select order_id, ship_via from old_rows
                    ) as linked
                )
            );
        when 'DELETE' then
            perform datalake.note_change(array(select order_id from old_rows));
    end case;
    return null;
end
$$;

create function datalake.note_order_details()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    case tg_op
        when 'INSERT' then
            perform datalake.note_change(
                order_ids => array(select distinct order_id from new_rows),
                product_ids => array(select distinct product_id from new_rows)
            );
        when 'UPDATE' then
            perform datalake.note_change(
                order_ids => array(
                    select order_id from old_rows
                    union
                    select order_id from new_rows
                ),
                product_ids => array(
                    select product_id from (
                        select order_id, product_id from new_rows
                        except
                        select order_id, product_id from old_rows
                    ) as linked
                )
            );
        when 'DELETE' then
            perform datalake.note_change(array(select distinct order_id from old_rows));
    end case;
    return null;
end
$$;

create function datalake.note_employee_territories()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    changed_employee_ids smallint[];
    linked_territory_ids text[] := '{}';
begin
    case tg_op
        when 'INSERT' then
            select
                array_agg(distinct employee_id),
                array_agg(distinct territory_id)
            into changed_employee_ids, linked_territory_ids
            from new_rows;
        when 'UPDATE' then
            changed_employee_ids := array(
                select employee_id from old_rows
                union
                select employee_id from new_rows
            );
            linked_territory_ids := array(select distinct territory_id from new_rows);
        when 'DELETE' then
            changed_employee_ids := array(select distinct employee_id from old_rows);
    end case;

    -- An employee's territories are part of the employee: who changes them locks the
    -- employee's row, as who changes the employee's name does.
    perform from datalake.employees
    where employee_id = any(changed_employee_ids)
    order by employee_id
    for no key update;

    perform datalake.lock_territories(linked_territory_ids);

    perform datalake.note_change(
        array(
            select order_id from datalake.orders
            where employee_id = any(changed_employee_ids)
        )
    );
    return null;
end
$$;

-- An update of a row that orders show. (An order refers to what it shows, so what is
-- inserted is not shown yet, and what is deleted is not shown any more.)
create function datalake.note_shown()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    case tg_table_name
        when 'customers' then
            perform datalake.note_change(array(
                select order_id from datalake.orders
                where customer_id in (
                    select customer_id from old_rows
                    union
                    select customer_id from new_rows
                )
            ));
        when 'employees' then
            perform datalake.note_change(array(
                select order_id from datalake.orders
                where employee_id in (
                    select employee_id from old_rows
                    union
                    select employee_id from new_rows
                )
            ));
        when 'shippers' then
            perform datalake.note_change(array(
                select order_id from datalake.orders
                where ship_via in (
                    select shipper_id from old_rows
                    union
                    select shipper_id from new_rows
                )
            ));
        when 'products' then
            perform datalake.lock_suppliers_and_categories(array(
                select product_id from (
                    select product_id, supplier_id, category_id from new_rows
                    except
                    select product_id, supplier_id, category_id from old_rows
                ) as linked
            ));
            perform datalake.note_change(array(
                select distinct order_id from datalake.order_details
                where product_id in (
                    select product_id from old_rows
                    union
                    select product_id from new_rows
                )
            ));
        when 'suppliers' then
            perform datalake.note_change(array(
                select distinct order_details.order_id
                from datalake.order_details
                join datalake.products
                    on order_details.product_id = products.product_id
                where products.supplier_id in (
                    select supplier_id from old_rows
                    union
                    select supplier_id from new_rows
                )
            ));
        when 'categories' then
            perform datalake.note_change(array(
                select distinct order_details.order_id
                from datalake.order_details
                join datalake.products
                    on order_details.product_id = products.product_id
                where products.category_id in (
                    select category_id from old_rows
                    union
                    select category_id from new_rows
                )
            ));
        when 'territories' then
            perform datalake.lock_regions(array(
                select territory_id from (
                    select territory_id, region_id from new_rows
                    except
                    select territory_id, region_id from old_rows
                ) as linked
            ));
            perform datalake.note_change(array(
                select distinct orders.order_id
                from datalake.orders
                join datalake.employee_territories
                    on orders.employee_id = employee_territories.employee_id
                where employee_territories.territory_id in (
                    select territory_id from old_rows
                    union
                    select territory_id from new_rows
                )
            ));
        when 'region' then
            perform datalake.note_change(array(
                select distinct orders.order_id
                from datalake.orders
                join datalake.employee_territories
                    on orders.employee_id = employee_territories.employee_id
                join datalake.territories
                    on employee_territories.territory_id = territories.territory_id
                where territories.region_id in (
                    select region_id from old_rows
                    union
                    select region_id from new_rows
                )
            ));
    end case;
    return null;
end
$$;

-- Locks that two transactions need which cannot see each other's changes yet.
--
-- One renames a customer, the other one inserts an order of that customer: the first does
-- not see the order, the second not the new name. So who makes an order refer to a row takes
-- a share lock on that row, and on what it refers to in turn; it waits for a change that is
-- under way there, and a later change waits for it, and then finds the order. Orders of the
-- same customer do not wait for each other. All locks are taken in one order (employees,
-- territories, regions; products, suppliers, categories; rows by key), the outbox's last.

create function datalake.lock_regions(territory_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from datalake.region
    where region_id in (
        select region_id from datalake.territories
        where territory_id = any(territory_ids)
    )
    order by region_id
    for share;
end
$$;

create function datalake.lock_territories(territory_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from datalake.territories
    where territory_id = any(territory_ids)
    order by territory_id
    for share;

    perform datalake.lock_regions(territory_ids);
end
$$;

create function datalake.lock_suppliers_and_categories(product_ids smallint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from datalake.suppliers
    where supplier_id in (
        select supplier_id from datalake.products where product_id = any(product_ids)
    )
    order by supplier_id
    for share;

    perform from datalake.categories
    where category_id in (
        select category_id from datalake.products where product_id = any(product_ids)
    )
    order by category_id
    for share;
end
$$;

create function datalake.lock_shown(
    customer_ids bpchar[],
    employee_ids smallint[],
    shipper_ids smallint[],
    product_ids smallint[]
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from datalake.customers
    where customer_id = any(customer_ids)
    order by customer_id
    for share;

    perform from datalake.employees
    where employee_id = any(employee_ids)
    order by employee_id
    for share;

    perform datalake.lock_territories(
        array(
            select territory_id from datalake.employee_territories
            where employee_id = any(employee_ids)
        )
    );

    perform from datalake.shippers
    where shipper_id = any(shipper_ids)
    order by shipper_id
    for share;

    perform from datalake.products
    where product_id = any(product_ids)
    order by product_id
    for share;

    perform datalake.lock_suppliers_and_categories(product_ids);
end
$$;

-- Bring the outbox's rows of some orders up to date.
create function datalake.write_events(changed_order_ids smallint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set extra_float_digits = 1
set bytea_output = hex
as $$
declare
    count_locked bigint;
begin
    -- Who changed the same order waits here for the other one's commit; what is read after
    -- that is read with a new snapshot, which sees it. While it waited, an order may have
    -- been deleted and have come back: once more, then.
    loop
        perform from datalake.cdc_events
        where order_id = any(changed_order_ids)
        order by order_id
        for update;
        get diagnostics count_locked = row_count;

        exit when count_locked = (
            select count(*) from datalake.cdc_events
            where order_id = any(changed_order_ids)
        );
    end loop;

    -- The clock, not the transaction's start: of two events of an order, the later one then
    -- has the later time.
    insert into datalake.cdc_events as stored (
        order_id,
        customer_id,
        order_date,
        required_date,
        shipped_date,
        order_items,
        products,
        customer,
        employee,
        shipper,
        shipment,
        updated_at
    )
    select
        order_id,
        customer_id,
        order_date,
        required_date,
        shipped_date,
        order_items,
        products,
        customer,
        employee,
        shipper,
        shipment,
        clock_timestamp() as updated_at

    from datalake.order_events

    where order_id = any(changed_order_ids)

    order by order_id

    on conflict (order_id) do update
    set
        customer_id = excluded.customer_id,
        order_date = excluded.order_date,
        required_date = excluded.required_date,
        shipped_date = excluded.shipped_date,
        order_items = excluded.order_items,
        products = excluded.products,
        customer = excluded.customer,
        employee = excluded.employee,
        shipper = excluded.shipper,
        shipment = excluded.shipment,
        updated_at = excluded.updated_at
    where (
        stored.customer_id,
        stored.order_date,
        stored.required_date,
        stored.shipped_date,
        stored.order_items,
        stored.products,
        stored.customer,
        stored.employee,
        stored.shipper,
        stored.shipment
    ) is distinct from (
        excluded.customer_id,
        excluded.order_date,
        excluded.required_date,
        excluded.shipped_date,
        excluded.order_items,
        excluded.products,
        excluded.customer,
        excluded.employee,
        excluded.shipper,
        excluded.shipment
    );

    delete from datalake.cdc_events
    where
        order_id = any(changed_order_ids)
        and not exists (
            select from datalake.orders where orders.order_id = cdc_events.order_id
        );
end
$$;

-- The end of a transaction: write the events of everything it noted, in one call. (A call
-- for each row would have each look at all rows of the transaction: 32,000 statements then
-- took 26 seconds to commit.)
create function datalake.write_changed_orders()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    changed record;
begin
    with

    noted as (
        delete from datalake.changed_orders
        where transaction_id = pg_current_xact_id()
        returning *
    )

    select
        array(select distinct unnest(order_ids) from noted) as order_ids,
        array(select distinct unnest(customer_ids) from noted) as customer_ids,
        array(select distinct unnest(employee_ids) from noted) as employee_ids,
        array(select distinct unnest(shipper_ids) from noted) as shipper_ids,
        array(select distinct unnest(product_ids) from noted) as product_ids
    into changed;

    if cardinality(changed.order_ids) > 0 then
        perform datalake.lock_shown(
            changed.customer_ids,
            changed.employee_ids,
            changed.shipper_ids,
            changed.product_ids
        );
        perform datalake.write_events(changed.order_ids);
    end if;
    return null;
end
$$;

create constraint trigger write_changed_orders
after insert on datalake.changed_orders
deferrable initially deferred
for each row
when (new.is_first)
execute function datalake.write_changed_orders();

-- Keep all writers out until the transaction's end.
--
-- Some write an order before its lines, some a line before its order: whichever table is
-- locked first, a wait for the next one can be for a writer that waits for the first. So a
-- wait is short, and after it all locks are given back (by the block's subtransaction): the
-- writer goes on before anybody looks for a deadlock, which takes deadlock_timeout, a second
-- unless set otherwise.
create function datalake.lock_base_tables()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '20ms'
as $$
begin
    loop
        begin
            lock table
                datalake.orders,
                datalake.order_details,
                datalake.customers,
                datalake.employees,
                datalake.employee_territories,
                datalake.territories,
                datalake.region,
                datalake.shippers,
                datalake.products,
                datalake.suppliers,
                datalake.categories
            in share mode;
            exit;
        exception
            when lock_not_available then
                perform pg_sleep(0.05);
        end;
    end loop;
end
$$;

-- Fill the outbox, or mend it: afterwards it holds what it should, and only rows that
-- differed have made an event. It waits for the writers that are under way, and others wait
-- until it has committed.
create procedure datalake.fill_cdc_events()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform datalake.lock_base_tables();

    perform datalake.write_events(
        array(
            select order_id from datalake.orders
            union
            select order_id from datalake.cdc_events
        )
    );
end
$$;

-- A truncate brings no rows to a trigger, and Debezium leaves it out unless told otherwise:
-- whatever follows these tables would keep their rows for ever.
create function datalake.refuse_truncate()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception 'datalake.% is captured, so it cannot be truncated', tg_table_name
        using
            errcode = 'feature_not_supported',
            hint = format('Use: delete from datalake.%I', tg_table_name);
end
$$;

-- A trigger with both the old and the new rows is a trigger for one kind of statement.
do $$
declare
    captured text;
    noted text;
begin
    foreach captured in array array[
        'categories', 'customers', 'employee_territories', 'employees', 'order_details',
        'orders', 'products', 'region', 'shippers', 'suppliers', 'territories', 'cdc_events'
    ]
    loop
        execute format(
            'create trigger refuse_truncate before truncate on datalake.%I
            for each statement execute function datalake.refuse_truncate()',
            captured
        );
    end loop;

    foreach noted in array array['orders', 'order_details', 'employee_territories']
    loop
        execute format(
            'create trigger note_insert after insert on datalake.%1$I
            referencing new table as new_rows
            for each statement execute function datalake.%2$I()',
            noted, 'note_' || noted
        );
        execute format(
            'create trigger note_update after update on datalake.%1$I
            referencing old table as old_rows new table as new_rows
            for each statement execute function datalake.%2$I()',
            noted, 'note_' || noted
        );
        execute format(
            'create trigger note_delete after delete on datalake.%1$I
            referencing old table as old_rows
            for each statement execute function datalake.%2$I()',
            noted, 'note_' || noted
        );
    end loop;

    foreach noted in array array[
        'customers', 'employees', 'shippers', 'products', 'suppliers', 'categories',
        'territories', 'region'
    ]
    loop
        execute format(
            'create trigger note_update after update on datalake.%I
            referencing old table as old_rows new table as new_rows
            for each statement execute function datalake.note_shown()',
            noted
        );
    end loop;
end
$$;

-- Functions may be called by anyone unless told otherwise; these are the triggers' own.
revoke execute on all routines in schema datalake from public;
