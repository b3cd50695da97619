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
    superseded_by integer,          -- the generation that superseded it
    host integer generated always as (seq >> 55) virtual
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
    host integer generated always as (seq >> 55) virtual,
    is_pinned integer not null default 0,
    is_edited integer not null default 0,
    verdict text,                   -- of the user: wrong, superseded, restored
    is_corrected integer not null default 0,    -- a later reply replaced or withdrew it
    repeats integer,                -- the revised observation with the same content
    tree text,                      -- null: its project only; empty: every project; else: those below this folder
    is_replaced integer not null default 0,     -- a later one holds instead
    -- Retired observations are found with a mark, and given to no session. What was pinned or edited by hand stays.
    is_retired integer generated always as (coalesce(verdict != 'restored',
        is_corrected or repeats is not null or is_replaced and not is_pinned and not is_edited)) virtual,
    edited_by text,                 -- claude, program; null if it was the user
    pinned_by text,
    unique (seq, number)
) strict;

create index observations_by_project on observations (project, at_us) where is_visible;
create index observations_by_time on observations (at_us) where is_visible;
create index observations_by_session on observations (session);
create index observations_by_hand on observations (project, at_us) where is_visible and origin = 'user';
create index observations_revised on observations (id)
    where is_pinned or is_edited or verdict is not null or repeats is not null;
create index observations_pinned on observations (project, at_us) where is_pinned;
create index observations_rules on observations (project, at_us) where is_visible and type = 'rule';
create index observations_wide on observations (at_us) where is_visible and tree is not null;
create index observations_auto_memory on observations (id) where origin = 'auto-memory';
create index observations_noted on observations (project, at_us) where is_visible and (origin in ('claude', 'program') or edited_by is not null and (origin = 'user' or type = 'rule'));

create trigger observation_files_insert after insert on observations
when new.type in ('decision', 'rule', 'note', 'security_alert') or instr(new.concepts, '"gotcha"') begin
    insert or ignore into observation_files (file, project, observation)
        select value, new.project, new.id from json_each(new.files_read)
        union select value, new.project, new.id from json_each(new.files_modified);
end;

create trigger observation_files_delete after delete on observations begin
    delete from observation_files where observation = old.id;
end;

create trigger observation_files_update
after update of type, project, concepts, files_read, files_modified on observations begin
    delete from observation_files where observation = old.id;
    insert or ignore into observation_files (file, project, observation)
        select value, new.project, new.id from json_each(new.files_read)
        where new.type in ('decision', 'rule', 'note', 'security_alert') or instr(new.concepts, '"gotcha"')
        union select value, new.project, new.id from json_each(new.files_modified)
        where new.type in ('decision', 'rule', 'note', 'security_alert') or instr(new.concepts, '"gotcha"');
end;

create view visible_observations as
    select *, 'inproject' || project as scope from observations where is_visible;

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
    host integer generated always as (seq >> 55) virtual,
    unique (seq, number)
) strict;

create index summaries_by_time on summaries (at_us) where is_visible;
create index summaries_by_session on summaries (session);
create index summaries_by_project on summaries (project, at_us, id, session) where is_visible;

create view visible_summaries as
    select *, 'inproject' || project as scope from summaries where is_visible;

-- The files of observations that matter before a file is used: decisions, rules, notes, weaknesses and traps. Triggers
-- update it.
create table observation_files (
    file text not null,             -- relative to the project, if inside it
    project integer not null,
    observation integer not null,
    primary key (file, project, observation)
) strict, without rowid;

create index observation_files_by_observation on observation_files (observation);

-- Which observations a session was given in full, and when. An observation is named by its event and its number there.
create table injections (
    seq integer not null,
    position integer not null,      -- in the text, from 1
    at_us integer not null,
    session integer references sessions (id),
    project integer not null references projects (id),
    moment text not null,           -- session start, prompt
    event blob not null,            -- the reply, note or import
    number integer not null,
    primary key (seq, position)
) strict, without rowid;

create index injections_by_session on injections (session);
create index injections_by_observation on injections (event, number);
