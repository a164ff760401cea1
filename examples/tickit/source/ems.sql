-- TICKIT's events, in PostgreSQL. Days (dateid) are in ecomm, another database.
create schema ems;

create table ems.category (
    catid smallint primary key,
    catgroup varchar(10),
    catname varchar(10),
    catdesc varchar(50)
);

create table ems.venue (
    venueid smallint primary key,
    venuename varchar(100),
    venuecity varchar(30),
    venuestate char(2),
    venueseats integer
);

create table ems.event (
    eventid integer primary key,
    venueid smallint not null references ems.venue,
    catid smallint not null references ems.category,
    dateid smallint not null,
    eventname varchar(200),
    starttime timestamp
);
