-- TICKIT's listings and sales, in MariaDB or MySQL. Events are in ems and users in crm, two
-- other databases.
create schema ecomm;

create table ecomm.date (
    dateid smallint primary key,
    caldate date not null,
    day char(3) not null,
    week smallint not null,
    month char(5) not null,
    qtr char(5) not null,
    year smallint not null,
    holiday boolean default false
);

create table ecomm.listing (
    listid integer primary key,
    sellerid integer not null,
    eventid integer not null,
    dateid smallint not null references ecomm.date (dateid),
    numtickets smallint not null,
    priceperticket decimal(8,2),
    totalprice decimal(8,2),
    listtime datetime
);

create table ecomm.sale (
    salesid integer primary key,
    listid integer not null references ecomm.listing (listid),
    sellerid integer not null,
    buyerid integer not null,
    eventid integer not null,
    dateid smallint not null references ecomm.date (dateid),
    qtysold smallint not null,
    pricepaid decimal(8,2),
    commission decimal(8,2),
    saletime datetime
);
