-- One artist from the first row to the last: each statement is followed to silver.
insert into artists values (41, 'Ida Berg', null, 'Female', 1901, null);
update artists set nationality = 'Danish' where artist_id = 41;
update artists set name = 'Ida Berg Holm' where artist_id = 41;
update artists set nationality = 'American', birth_year = 1902 where artist_id = 41;
update artists set death_year = 1988 where artist_id = 41;
delete from artists where artist_id = 41;
