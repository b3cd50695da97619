-- Replies and failures of the agent, and the memories in the replies.

create table replies (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    session integer references sessions (id),
    project integer not null references projects (id),
    provider text not null,
    model text not null,
    prompt_version text not null,
    generation integer not null,
    memory_session text,
    attempt integer not null,
    verdict text not null,          -- answer, nothing, unreadable
    observations integer not null,
    summaries integer not null,
    skip_reason text,
    is_cut integer not null,
    tokens_in integer not null,
    tokens_cached integer not null,
    tokens_out integer not null,
    cost_micros integer not null,
    duration_ms integer not null,
    bytes integer not null,
    sources integer not null,       -- number of events that it answers
    is_current integer not null,    -- its memories are visible
    superseded_by integer           -- the generation that superseded it
) strict;

create index replies_by_version on replies (prompt_version);
create index replies_by_generation on replies (generation);
create index replies_by_time on replies (at_us);

-- Which events a reply answers.
create table answers (
    source integer not null,
    reply integer not null,
    primary key (source, reply)
) strict, without rowid;

create index answers_by_reply on answers (reply, source);

create table failures (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    session integer references sessions (id),
    project integer not null references projects (id),
    provider text not null,
    model text not null,
    prompt_version text not null,
    generation integer not null,
    class text not null,            -- transient, rate limit, quota, auth, invalid, unreadable
    message text,
    attempt integer not null,
    retry_after_ms integer not null,
    tokens_in integer not null,
    tokens_out integer not null,
    cost_micros integer not null,
    bytes integer not null,
    sources integer not null
) strict;

create index failures_by_time on failures (at_us);

create table observations (
    id integer primary key,
    event blob not null,            -- the reply, note or import
    seq integer not null,
    number integer not null,        -- in the reply, from 1
    at_us integer not null,         -- time of the last event behind it
    session integer references sessions (id),
    project integer not null references projects (id),
    prompt_number integer,
    origin text not null,           -- agent, user, import
    type text,
    title text,
    subtitle text,
    narrative text,
    facts text,                     -- JSON lists, null if empty
    concepts text,
    files_read text,
    files_modified text,
    agent_type text,                -- the subagent type, if all events behind it have the same
    provider text,
    model text,
    prompt_version text,
    generation integer not null,
    tokens integer not null,        -- its share of the tokens of the reply
    metadata text,
    is_visible integer not null,
    superseded_by integer,
    identifiers text,
    grams text,
    upstream_id text,
    unique (seq, number)
) strict;

create index observations_by_project on observations (project, at_us) where is_visible;
create index observations_by_time on observations (at_us) where is_visible;
create index observations_by_session on observations (session);

create table summaries (
    id integer primary key,
    event blob not null,
    seq integer not null,
    number integer not null,        -- 0: a reply has one at most
    at_us integer not null,
    session integer references sessions (id),
    project integer not null references projects (id),
    prompt_number integer,
    origin text not null,
    request text,
    investigated text,
    learned text,
    completed text,
    next_steps text,
    notes text,
    files_read text,
    files_edited text,
    provider text,
    model text,
    prompt_version text,
    generation integer not null,
    tokens integer not null,
    is_visible integer not null,
    superseded_by integer,
    identifiers text,
    grams text,
    upstream_id text,
    unique (seq, number)
) strict;

create index summaries_by_project on summaries (project, at_us) where is_visible;
create index summaries_by_time on summaries (at_us) where is_visible;
create index summaries_by_session on summaries (session);

create view visible_observations as
    select *, 'inproject' || project as scope from observations where is_visible;
create view visible_summaries as
    select *, 'inproject' || project as scope from summaries where is_visible;
-- Prompts of the user that are not private. The client's own prompts are excluded.
create view visible_prompts as
    select *, 'inproject' || project as scope from prompts where text is not null and submitter != 'task';
