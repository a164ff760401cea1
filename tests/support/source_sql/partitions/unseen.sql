-- None of these rows has an event.
alter table parts detach partition parts_1;
create table loose (like parts including all);
insert into loose values (7, '2029-01-01', 7, 'z');
alter table parts attach partition loose for values from ('2029-01-01') to ('2030-01-01');
