-- The checkpoint, and an index of the folded events.

create table checkpoint (
    one integer primary key check (one = 1),
    log blob,                       -- identity of the log; null before the first event
    position integer not null,      -- where reading continues
    events integer not null,        -- number of folded events
    at_us integer not null,         -- latest time of an event
    kinds text not null             -- observation types that replies were parsed with
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

-- Every event, by place and by id.
create table events (
    seq integer primary key,
    event blob not null unique,
    kind integer not null,
    at_us integer not null,
    session integer,
    project integer,
    forgotten_by integer            -- seq of the forgetting
) strict;

create index events_by_session on events (session);
create index events_forgotten on events (seq) where forgotten_by is not null;

-- Damaged ranges of the log.
create table gaps (
    segment integer not null,
    offset integer not null,
    bytes integer not null,
    reason text not null,
    event blob,                     -- the damaged record, if it is known
    kind integer,
    primary key (segment, offset)
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
