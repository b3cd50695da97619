-- The folded logs: checkpoints, events, damage. Every `seq` contains the number of its host in bits 55 to 62; our own
-- is 0. The column `host` is that number.

create table checkpoint (
    one integer primary key check (one = 1),
    log blob,                       -- identity of the log; null before the first event
    position integer not null,      -- where reading continues
    events integer not null,        -- number of folded events
    at_us integer not null,         -- latest time of an event
    kinds text not null,            -- observation types that replies were parsed with
    last_seq integer,               -- place and id of the last folded record
    last_event blob,
    rebuilt_because text,           -- the last rebuild caused by a different history of the log
    rebuilt_at_us integer not null default 0,
    lost_events integer not null default 0,
    lost_until_us integer not null default 0
) strict;

-- The version of each projection that wrote the rows.
create table projections (
    name text primary key,
    version integer not null
) strict, without rowid;

-- The last row id of each kind. Forgotten rows keep theirs, so that undoing a forgetting renumbers nothing.
create table counters (
    name text primary key,
    last integer not null
) strict, without rowid;

-- Logs of other machines.
create table hosts (
    log integer primary key,        -- the number of the host, from 1
    id blob not null,               -- identity of the log
    name text,                      -- name of the machine
    is_hidden integer not null,     -- then only its forgettings are folded
    position integer not null,      -- where reading continues
    events integer not null,
    at_us integer not null,
    last_seq integer,               -- place and id of the last folded record, without the number of the host
    last_event blob
) strict;

-- Every event, by place and by id. An event may be in several logs: rows imported on two machines.
create table events (
    seq integer primary key,
    event blob not null,
    kind integer not null,
    at_us integer not null,
    session integer,
    project integer,
    forgotten_by integer,           -- seq of the forgetting
    host integer generated always as (seq >> 55) virtual
) strict;

create index events_by_session on events (session);
create index events_forgotten on events (seq) where forgotten_by is not null;
create unique index events_once on events (event, host);
create index events_by_project on events (project, at_us);

-- Events that another log has, too, and whose memories are shown from there.
create table copies (
    seq integer primary key
) strict;

-- Damaged ranges of the logs.
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

-- Events that could not be decoded: invalid hook input, and kinds of newer versions.
create table unreadable (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    kind integer not null,
    version integer,
    hook text,
    error text,
    bytes integer not null
) strict;
