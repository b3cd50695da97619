-- The last record that was folded: its place and its id. If another record is there, the log has another past than
-- these rows, and they are rebuilt.

alter table checkpoint add column last_seq integer;
alter table checkpoint add column last_event blob;
alter table hosts add column last_seq integer;  -- as in that log, without its number here
alter table hosts add column last_event blob;

update checkpoint set (last_seq, last_event) =
    (select seq, event from events where seq < 1 << 55 order by seq desc limit 1);
update hosts set (last_seq, last_event) =
    (select seq - (log << 55), event from events
     where seq >= log << 55 and seq < (log + 1) << 55 order by seq desc limit 1);

-- Why the database was last rebuilt because the log had another past, and what the log no longer holds.
alter table checkpoint add column rebuilt_because text;
alter table checkpoint add column rebuilt_at_us integer not null default 0;
alter table checkpoint add column lost_events integer not null default 0;
alter table checkpoint add column lost_until_us integer not null default 0;

-- Statistics of tables that were nearly empty make the planner scan them when they have grown: full-text merges then
-- read the whole index each time. The first line makes sure that there is a table of statistics.
analyze projections;
delete from sqlite_stat1 where cast(stat as integer) < 1000;
