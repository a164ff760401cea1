-- As whom Debezium reads, with the least rights that it needs: docs/sources.md says why of
-- each. `{database}` and `{password}` are put in by whoever runs it.
create user if not exists 'debezium'@'%' identified by '{password}';

-- The binary log: where it is, and what is in it.
grant replication slave, replication client on *.* to 'debezium'@'%';

-- A moment's lock on all tables, in which a snapshot learns its place in the log.
grant reload on *.* to 'debezium'@'%';

-- The rows that a snapshot reads.
grant select on `{database}`.* to 'debezium'@'%';
