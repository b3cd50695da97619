-- Other machines' logs, folded beside our own. Every `seq` holds the number of its log in bits 55 to 62; our own
-- is 0. Everything is drawn again when this is applied, so what must change its shape starts empty.

create table hosts (
    log integer primary key,        -- its number here, from 1
    id blob not null,               -- identity of the log
    name text,                      -- what the machine calls itself
    is_hidden integer not null,     -- then only what it forgets is folded
    position integer not null,      -- where reading goes on
    events integer not null,
    at_us integer not null
) strict;

-- An event may be in several logs: rows that were imported on two machines.
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
    event blob,                     -- what was there, if that can be told
    kind integer,
    primary key (log, segment, offset)
) strict, without rowid;

-- A session belongs to one log. Those of other machines have its number behind their platform,
-- `claude-code@2`, because a platform has each session once.
alter table sessions add column log integer not null default 0;

drop index imports_once;
create unique index imports_once on imports (seq >> 55, origin, kind, upstream_id);

-- The forgetting itself, as JSON, and which events it names: it also holds for what arrives later from other
-- machines. Open are those that name none, but say what fits.
alter table forgettings add column what text not null default '{}';
alter table forgettings add column is_open integer not null default 0;

create table forgotten_events (
    event blob not null,
    forgetting integer not null,    -- seq
    primary key (event, forgetting)
) strict, without rowid;

-- What projects were called, and by which event first; and who was merged into whom. Logs arrive in any order,
-- so the last word is looked for by the events' ids, not by when they were folded.
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
