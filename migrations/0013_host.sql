-- `host` is the log that a row comes from: the number in bits 55 to 62 of its `seq`, 0 for our own log.
-- Virtual columns take no space, so adding them rewrites no row.

alter table events add column host integer generated always as (seq >> 55) virtual;
alter table prompts add column host integer generated always as (seq >> 55) virtual;
alter table tool_uses add column host integer generated always as (seq >> 55) virtual;
alter table stops add column host integer generated always as (seq >> 55) virtual;
alter table replies add column host integer generated always as (seq >> 55) virtual;
alter table observations add column host integer generated always as (seq >> 55) virtual;
alter table summaries add column host integer generated always as (seq >> 55) virtual;
alter table reprocesses add column host integer generated always as (seq >> 55) virtual;
alter table forgettings add column host integer generated always as (seq >> 55) virtual;
alter table compactions add column host integer generated always as (seq >> 55) virtual;
alter table imports add column host integer generated always as (seq >> 55) virtual;

drop index events_once;
create unique index events_once on events (event, host);

drop index imports_once;
create unique index imports_once on imports (host, origin, kind, upstream_id);
