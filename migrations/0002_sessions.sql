-- Projects, sessions, prompts, tool uses and stops.

create table projects (
    id integer primary key,
    event blob not null,            -- the first event that names it
    seq integer not null,
    key text not null unique,
    label text,
    is_label_given integer not null default 0,
    root text,
    merged_into integer references projects (id),
    owner integer not null          -- the final target of its merges; itself if it was not merged
) strict;

create index projects_by_owner on projects (owner);

create table sessions (
    id integer primary key,
    event blob not null,            -- the first event that names it
    seq integer not null,
    platform text not null,
    session text not null,          -- the client's id
    memory_session text,            -- the agent's id of its conversation
    host text,
    project integer not null references projects (id),
    source text,                    -- its last start: startup, resume, clear, compact, fork
    cwd text,
    model text,
    transcript_path text,
    started_at_us integer not null,
    at_us integer not null,         -- time of the last event
    ended_at_us integer,            -- null again when it is resumed
    end_reason text,
    prompt_id text,                 -- of the last prompt
    prompt_number integer not null default 0,
    turn integer not null default 0,
    is_turn_open integer not null default 0,
    tool_uses integer not null default 0,
    stops integer not null default 0,
    title text,
    upstream_id text,
    forgotten_by integer,
    unique (platform, session)
) strict;

create index sessions_by_project on sessions (project, at_us);

create table prompts (
    id integer primary key,
    event blob not null,
    seq integer not null unique,
    at_us integer not null,
    session integer not null references sessions (id),
    project integer not null references projects (id),
    number integer not null,        -- counts prompts of the user
    turn integer not null,          -- the number of its first prompt
    text text,                      -- null if private
    is_private integer not null,
    submitter text not null,        -- user, media, task
    prompt_id text,
    cwd text,
    identifiers text,
    grams text,
    upstream_id text
) strict;

create index prompts_by_session on prompts (session, number);
create index prompts_by_time on prompts (at_us);

create table tool_uses (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    session integer not null references sessions (id),
    project integer not null references projects (id),
    prompt_number integer not null,
    turn integer not null,
    tool text,
    tool_use_id text,
    has_failed integer not null,
    is_interrupt integer not null,
    files_read text,                -- JSON: named by the input, relative to the project if inside it
    files_written text,
    cwd text,
    agent_id text,
    agent_type text,
    duration_ms integer,
    bytes integer not null,
    answered_by integer,            -- seq of the reply
    attempts integer not null default 0,
    is_parked integer not null default 0,
    upstream_id text
) strict;

create unique index tool_uses_once on tool_uses (session, tool_use_id) where tool_use_id is not null;
create index tool_uses_by_turn on tool_uses (session, turn) where files_written is not null;
create index tool_uses_open on tool_uses (session, turn, seq) where answered_by is null;

create table stops (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    session integer not null references sessions (id),
    project integer not null references projects (id),
    prompt_number integer not null,
    turn integer not null,
    scope text not null,            -- turn, subagent, compaction
    agent_id text,
    agent_type text,
    background_tasks integer not null,
    bytes integer not null,
    answered_by integer,
    attempts integer not null default 0,
    is_parked integer not null default 0
) strict;

create index stops_open on stops (session, turn, seq) where answered_by is null;
