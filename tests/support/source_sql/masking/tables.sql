create schema app;
create table app.people (
    person_id int primary key, email varchar(100), phone varchar(20),
    passport text, biography text, details jsonb
);
create table app.authors (author_id int primary key, biography text, rank int);
create table app.logins (login text primary key, email text);
-- A biography is more than a page has room for, so that PostgreSQL keeps it beside the row.
alter table app.people alter column biography set storage external;
alter table app.authors alter column biography set storage external;
alter table app.authors replica identity full;
insert into app.people values
    (1, 'a@example.org', '555-0100', 'X1', repeat('a life ', 3000), '{"a": 1}');
insert into app.authors values (1, repeat('a life ', 3000), 1);
