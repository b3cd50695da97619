-- Reprocessing, forgetting, importing.

create table reprocesses (
    generation integer primary key,
    event blob not null,
    seq integer not null,
    at_us integer not null,
    prompt_version text not null,
    provider text,
    model text,
    since_us integer,
    until_us integer,
    project text,
    session text,
    is_fresh integer not null,
    is_shadow integer not null,
    finished_at_us integer,
    is_current integer not null default 0
) strict;

create table forgettings (
    seq integer primary key,
    event blob not null unique,
    at_us integer not null,
    undoes blob,
    is_void integer not null,       -- undone later in the log
    reason text,
    events integer not null,        -- number of events it removed
    memories integer not null
) strict;

-- Known before a rebuild: forgettings that a later event undoes.
create table void_forgettings (
    event blob primary key
) strict, without rowid;

create table imports (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    source text not null,
    origin text not null,
    kind text not null,             -- session, prompt, observation, summary, pending
    upstream_id text not null,
    refused text                    -- why it became no row
) strict;

create unique index imports_once on imports (origin, kind, upstream_id);
