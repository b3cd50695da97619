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

create table sessions (
    id integer primary key,
    event blob not null,            -- the first event that names it
    seq integer not null,
    platform text not null,         -- the client; `codex@2` is a session of host 2
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
    log integer not null default 0, -- the number of the host; our own is 0
    branch text,                    -- at the last event on a branch
    first_commit text,              -- HEAD at its first event
    last_commit text,               -- HEAD at its last event
    client text generated always as (replace(platform, '@' || log, '')) virtual,
    unique (platform, session)
) strict;

create index sessions_by_project on sessions (project, at_us, forgotten_by);

-- Sessions that were cancelled over the API: they have failed.
create index sessions_cancelled on sessions (id) where end_reason = 'claude-mem:cancelled';

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
    upstream_id text,
    host integer generated always as (seq >> 55) virtual
) strict;

create index prompts_by_session on prompts (session, number);
create index prompts_by_time on prompts (at_us);

-- Prompts of the user that are not private. The client's own prompts are excluded.
create view visible_prompts as
    select *, 'inproject' || project as scope from prompts where text is not null and submitter != 'task';

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
    upstream_id text,
    is_settled integer not null default 0,
    host integer generated always as (seq >> 55) virtual
) strict;

create unique index tool_uses_once on tool_uses (session, tool_use_id) where tool_use_id is not null;
create index tool_uses_by_turn on tool_uses (session, turn) where files_written is not null;
create index tool_uses_open on tool_uses (session, turn, seq) where answered_by is null;
create index tool_uses_by_time on tool_uses (at_us, project, bytes);
create index tool_uses_pending on tool_uses (at_us)
    where answered_by is null and not is_parked and seq < 36028797018963968;

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
    is_parked integer not null default 0,
    is_settled integer not null default 0,
    host integer generated always as (seq >> 55) virtual
) strict;

create index stops_open on stops (session, turn, seq) where answered_by is null;
create index stops_pending on stops (at_us)
    where answered_by is null and not is_parked and scope = 'turn' and seq < 36028797018963968;
create index stops_by_turn on stops (session, turn, seq) where scope = 'turn';

-- How many events of our own log are pending and parked, kept current by triggers: hooks, status and the worker ask,
-- and there can be a million. The end of a subagent alone causes no request, so it does not count.
create table pending_totals (
    one integer primary key check (one = 1),
    pending integer not null,
    parked integer not null
) strict;

insert into pending_totals values (1, 0, 0);

create trigger tool_uses_pending_insert after insert on tool_uses
when new.answered_by is null and new.host = 0 begin
    update pending_totals set pending = pending + not new.is_parked, parked = parked + new.is_parked;
end;

create trigger tool_uses_pending_update after update of answered_by, is_parked on tool_uses
when new.host = 0 begin
    update pending_totals set
        pending = pending + (new.answered_by is null and not new.is_parked)
            - (old.answered_by is null and not old.is_parked),
        parked = parked + (new.answered_by is null and new.is_parked)
            - (old.answered_by is null and old.is_parked);
end;

create trigger tool_uses_pending_delete after delete on tool_uses
when old.answered_by is null and old.host = 0 begin
    update pending_totals set pending = pending - not old.is_parked, parked = parked - old.is_parked;
end;

create trigger stops_pending_insert after insert on stops
when new.answered_by is null and new.host = 0 and new.scope = 'turn' begin
    update pending_totals set pending = pending + not new.is_parked, parked = parked + new.is_parked;
end;

create trigger stops_pending_update after update of answered_by, is_parked on stops
when new.host = 0 and new.scope = 'turn' begin
    update pending_totals set
        pending = pending + (new.answered_by is null and not new.is_parked)
            - (old.answered_by is null and not old.is_parked),
        parked = parked + (new.answered_by is null and new.is_parked)
            - (old.answered_by is null and old.is_parked);
end;

create trigger stops_pending_delete after delete on stops
when old.answered_by is null and old.host = 0 and old.scope = 'turn' begin
    update pending_totals set pending = pending - not old.is_parked, parked = parked - old.is_parked;
end;

-- Events of cancelled sessions wait until these continue, and do not count.

create view cancelled_events as
select is_parked from tool_uses
where answered_by is null and host = 0
    and session in (select id from sessions where end_reason = 'claude-mem:cancelled')
union all
select is_parked from stops
where answered_by is null and host = 0 and scope = 'turn'
    and session in (select id from sessions where end_reason = 'claude-mem:cancelled');

create view due_totals as
select
    pending - (select count(*) from cancelled_events where not is_parked) as pending,
    parked - (select count(*) from cancelled_events where is_parked) as parked
from pending_totals;
