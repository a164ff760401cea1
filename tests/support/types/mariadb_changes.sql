update unchanged set n = 2;
insert into zero_dates values (1, '0000-00-00', '0000-00-00');
-- A statement that the log has as such is no event.
set session binlog_format = STATEMENT;
insert into zero_dates values (2, '2026-01-01', '2026-01-01');
set session binlog_format = ROW;
truncate table zero_dates;
