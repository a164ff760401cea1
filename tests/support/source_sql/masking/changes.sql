insert into app.people (person_id, email, passport) values (2, 'b@example.org', 'X2');
update app.people set phone = '555-0199' where person_id = 1;
update app.authors set rank = 2;
insert into app.logins values ('ann', 'a@example.org');
