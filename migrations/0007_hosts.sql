-- Logs of other machines. Every `seq` contains the number of its host in bits 55 to 62; our own is 0. This
-- migration causes a rebuild, so tables that change their columns start empty.

create table hosts (
    log integer primary key,        -- the number of the host, from 1
    id blob not null,               -- identity of the log
    name text,                      -- name of the machine
    is_hidden integer not null,     -- then only its forgettings are folded
    position integer not null,      -- where reading continues
    events integer not null,
    at_us integer not null
) strict;

-- An event may be in several logs: rows imported on two machines.
drop table events;
create table events (
    seq integer primary key,
    event blob not null,
    kind integer not null,
    at_us integer not null,
    session integer,
    project integer,
    forgotten_by integer            -- seq of the forgetting
) strict;

create unique index events_once on events (event, seq >> 55);
create index events_by_session on events (session);
create index events_forgotten on events (seq) where forgotten_by is not null;

-- Events that another log has, too, and whose memories are shown from there.
create table copies (
    seq integer primary key
) strict;

drop table gaps;
create table gaps (
    log integer not null,
    segment integer not null,
    offset integer not null,
    bytes integer not null,
    reason text not null,
    event blob,                     -- the damaged record, if it is known
    kind integer,
    primary key (log, segment, offset)
) strict, without rowid;

-- The host of a session. Sessions of other hosts have its number in their platform, `claude-code@2`,
-- because (platform, session) is unique.
alter table sessions add column log integer not null default 0;

drop index imports_once;
create unique index imports_once on imports (seq >> 55, origin, kind, upstream_id);

-- The forgetting as JSON, and the events it names: it also applies to events that arrive later from other
-- machines. Open ones have conditions instead of a list of events.
alter table forgettings add column what text not null default '{}';
alter table forgettings add column is_open integer not null default 0;

create table forgotten_events (
    event blob not null,
    forgetting integer not null,    -- seq
    primary key (event, forgetting)
) strict, without rowid;

-- Names of projects and merges, with their events. Logs arrive in any order, so the latest one is
-- determined by event id, not by the order of folding.
create table project_names (
    project integer not null references projects (id),
    label text not null,
    event blob not null,
    primary key (project, label)
) strict, without rowid;

create table project_merges (
    event blob primary key,
    source text not null,
    target text not null,
    label text not null
) strict, without rowid;
