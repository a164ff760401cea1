-- The museum's tables, and a made collection: 40 artists with 400 artworks.
--
-- The first artist, and the names of the columns, are the Museum of Modern Art's
-- (github.com/MuseumofModernArt/collection, CC0); its files are not part of this project.
create table artists (
    artist_id integer primary key,
    name varchar(200),
    nationality varchar(100),
    gender varchar(25),
    birth_year integer,
    death_year integer
);

create table artworks (
    artwork_id integer primary key,
    title varchar(500),
    artist_id integer not null references artists,
    date integer,
    medium varchar(250),
    dimensions text,
    acquisition_date date,
    credit text,
    catalogue varchar(250),
    department varchar(250),
    classification varchar(250),
    object_number text,
    diameter_cm numeric(10, 4),
    circumference_cm numeric(10, 4),
    height_cm numeric(10, 4),
    length_cm numeric(10, 4),
    width_cm numeric(10, 4),
    depth_cm numeric(10, 4),
    weight_kg numeric(10, 4),
    durations integer
);

alter table artists replica identity full;
alter table artworks replica identity full;

insert into artists values (1, 'Robert Arneson', 'American', 'Male', 1930, 1992);

insert into artists
select
    n,
    'Artist ' || n || (array[' Müller', ' O''Neill', ' "Abdić"'])[1 + n % 3],
    (array['American', 'French', 'Côte d''Ivoire', 'Bosnian / Herzegovinian', null])[1 + n % 5],
    (array['Female', 'Male', null])[1 + n % 3],
    1850 + n * 37 % 140,
    case when n % 2 = 0 then 1920 + n * 37 % 140 end
from generate_series(2, 40) as n;

insert into artworks
select
    n,
    'Untitled, plate ' || n || (array[' (recto)', ' from "Ærø"', ' é'])[1 + n % 3],
    1 + n * 7 % 40,
    1900 + n * 13 % 120,
    (array['Oil on canvas', 'Gelatin silver print', 'Ink on paper, 9 x 12"', 'Blätter', null])[1 + n % 5],
    '19 1/8 x 66 1/2" (48.6 x 168.9 cm)',
    case when n % 7 > 0 then date '1931-05-01' + n * 61 end,
    'Fractional and promised gift',
    (array['Y', 'N'])[1 + n % 2],
    (array['Drawings & Prints', 'Photography', 'Painting & Sculpture'])[1 + n % 3],
    (array['Print', 'Photograph', 'Drawing', 'Frank Lloyd Wright Archive', null])[1 + n % 5],
    n % 999 || '.19' || 10 + n % 90,
    null,
    null,
    (n * 17 % 3000) / 10.0,
    null,
    (n * 29 % 2000) / 10.0,
    null,
    null,
    null
from generate_series(1, 400) as n;
