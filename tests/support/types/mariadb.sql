-- What MariaDB has beside the table of each type.
create table zero_dates (
    id int primary key,
    day date not null default '2020-01-02',
    month date not null
);
insert into zero_dates values (0, '2026-01-01', '2026-01-01');
