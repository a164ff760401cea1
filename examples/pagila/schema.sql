-- Six tables with the columns, types and keys of Pagila's, https://github.com/devrimgunduz/pagila.

create type mpaa_rating as enum ('G', 'PG', 'PG-13', 'R', 'NC-17');

create domain year as integer check (value between 1901 and 2155);

create table actor (
    actor_id integer primary key generated always as identity,
    first_name text not null,
    last_name text not null,
    last_update timestamptz not null default now()
);

create table category (
    category_id integer primary key generated always as identity,
    name text not null,
    last_update timestamptz not null default now()
);

create table language (
    language_id integer primary key generated always as identity,
    name character(20) not null,
    last_update timestamptz not null default now()
);

create table film (
    film_id integer primary key generated always as identity,
    title text not null,
    description text,
    release_year year,
    language_id integer not null references language,
    original_language_id integer references language,
    rental_duration smallint not null default 3,
    rental_rate numeric(4, 2) not null default 4.99,
    length smallint,
    replacement_cost numeric(5, 2) not null default 19.99,
    rating mpaa_rating default 'G',
    last_update timestamptz not null default now(),
    special_features text[],
    fulltext tsvector not null
);

create table film_actor (
    actor_id integer not null references actor,
    film_id integer not null references film,
    last_update timestamptz not null default now(),
    primary key (actor_id, film_id)
);

create table film_category (
    film_id integer not null references film,
    category_id integer not null references category,
    last_update timestamptz not null default now(),
    primary key (film_id, category_id)
);
