-- Where folding stands in the log, and a light index of what was folded.

create table checkpoint (
    one integer primary key check (one = 1),
    log blob,                       -- identity of the log; null before the first event
    position integer not null,      -- where reading goes on
    events integer not null,        -- how many were folded
    at_us integer not null,         -- latest time of an event
    kinds text not null             -- types of observations that replies were read under
) strict;

-- With which version each projection was drawn.
create table projections (
    name text primary key,
    version integer not null
) strict, without rowid;

-- The last number given to a row of each kind. Numbers are used up even by what is forgotten, so that
-- taking a forgetting back renumbers nothing.
create table counters (
    name text primary key,
    last integer not null
) strict, without rowid;

-- Every event once: by its place, and by who it is.
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

-- Damage met while reading.
create table gaps (
    segment integer not null,
    offset integer not null,
    bytes integer not null,
    reason text not null,
    event blob,                     -- what was there, if that can be told
    kind integer,
    primary key (segment, offset)
) strict, without rowid;

-- What was recorded but could not be understood: hooks called with nonsense, kinds from the future.
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
