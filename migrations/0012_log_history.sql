-- Place and id of the last folded record. If another record is there, the history of the log differs from that of
-- the rows, and the database is rebuilt.

alter table checkpoint add column last_seq integer;
alter table checkpoint add column last_event blob;
alter table hosts add column last_seq integer;  -- without the number of the host
alter table hosts add column last_event blob;

update checkpoint set (last_seq, last_event) =
    (select seq, event from events where seq < 1 << 55 order by seq desc limit 1);
update hosts set (last_seq, last_event) =
    (select seq - (log << 55), event from events
     where seq >= log << 55 and seq < (log + 1) << 55 order by seq desc limit 1);

-- The last rebuild caused by a different history of the log, and the lost events.
alter table checkpoint add column rebuilt_because text;
alter table checkpoint add column rebuilt_at_us integer not null default 0;
alter table checkpoint add column lost_events integer not null default 0;
alter table checkpoint add column lost_until_us integer not null default 0;

-- Statistics of nearly empty tables make the planner scan them after they have grown: full-text merges then read
-- the whole index each time. The first statement ensures that the table of statistics exists.
analyze projections;
delete from sqlite_stat1 where cast(stat as integer) < 1000;
