-- What changes memories later: reprocessing, forgetting, compacting, importing, corrections, revisions, replacements.

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
    is_current integer not null default 0,
    host integer generated always as (seq >> 55) virtual
) strict;

create table forgettings (
    seq integer primary key,
    event blob not null unique,
    at_us integer not null,
    undoes blob,
    is_void integer not null,       -- undone later in the log
    reason text,
    events integer not null,        -- number of events it removed
    memories integer not null,
    what text not null default '{}',            -- the forgetting as JSON
    is_open integer not null default 0,         -- it has conditions instead of a list of events
    host integer generated always as (seq >> 55) virtual
) strict;

-- Known before a rebuild: forgettings that a later event undoes.
create table void_forgettings (
    event blob primary key
) strict, without rowid;

-- The events that a forgetting names: it also applies to events that arrive later from other machines.
create table forgotten_events (
    event blob not null,
    forgetting integer not null,    -- seq
    primary key (event, forgetting)
) strict, without rowid;

-- Observations that were forgotten. A revision of one of them may arrive later, from another machine.
create table forgotten_observations (
    event blob not null,
    number integer not null,
    forgetting integer not null,    -- seq
    primary key (event, number)
) strict, without rowid;

-- What compaction drops from the log.
create table compactions (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    drops_superseded integer not null,
    tools text,                     -- JSON: tools of which only a digest is kept
    raw_before_us integer,          -- the same for all tools before this time
    host integer generated always as (seq >> 55) virtual
) strict;

create table imports (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    source text not null,
    origin text not null,
    kind text not null,             -- session, prompt, observation, summary, pending
    upstream_id text not null,
    refused text,                   -- why it became no row
    host integer generated always as (seq >> 55) virtual
) strict;

create unique index imports_once on imports (host, origin, kind, upstream_id);

-- Observations that a later one of the same session corrects. They leave lists and context; `show` names what replaced
-- them.
create table corrections (
    seq integer not null,           -- the reply
    number integer not null,        -- in the reply, from 1
    at_us integer not null,
    session integer not null references sessions (id),
    observation integer,            -- the row that replaces; null if the earlier one is only withdrawn
    title text not null,            -- of the earlier one, as the reply names it
    target integer,                 -- the row that is corrected; null if none has the title
    primary key (seq, number)
) strict, without rowid;

create index corrections_by_session on corrections (session);
create index corrections_by_target on corrections (target) where target is not null;

-- Corrections by hand. An observation is named by its event and its number there, because ids of rows differ between
-- machines. Of several revisions, the one with the highest event id counts, so logs may arrive in any order.
create table revisions (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    target blob not null,           -- the reply, note or import with the observation
    number integer not null,
    what text not null,             -- edited, pinned, unpinned, wrong, superseded, restored
    type text,                      -- of an edit
    title text,
    narrative text,
    because text,                   -- of a mark
    by_event blob,                  -- the observation that supersedes it
    by_number integer,
    author text                     -- claude, program; null if it was the user
) strict;

create unique index revisions_by_target on revisions (target, number, event, seq);

-- The texts of edited observations before the edit.
create table originals (
    observation integer primary key,
    type text,
    title text,
    subtitle text,
    narrative text,
    facts text
) strict;

-- Observations that a later one of the same project replaces by rule: decisions that are given up, and lessons about a
-- command that are learned again. Which pair is one depends on the two rows alone, so logs may be folded in any order.
-- What such observations are about: the files of a decision, the commands of a lesson.
create table replacement_subjects (
    project integer not null,
    subject text not null,
    at_us integer not null,
    observation integer not null,
    primary key (project, subject, at_us, observation)
) strict, without rowid;

create index replacement_subjects_by_observation on replacement_subjects (observation);

create table replacements (
    target integer not null,        -- the earlier one
    observation integer not null,   -- the later one
    primary key (target, observation)
) strict, without rowid;

create index replacements_by_observation on replacements (observation);

create trigger replacements_insert after insert on replacements begin
    update observations set is_replaced = exists (select 1 from current_replacements where target = new.target)
    where id = new.target;
end;

create trigger replacements_delete after delete on replacements begin
    update observations set is_replaced = exists (select 1 from current_replacements where target = old.target)
    where id = old.target;
end;

-- The later ones that hold: neither wrong, nor withdrawn, nor of another generation.
create view current_replacements as
    select target, observation, at_us, title from replacements
        join observations on observations.id = observation
    where is_visible and not is_corrected and repeats is null and coalesce(verdict != 'wrong', 1);

create trigger replacements_mark after update of is_visible, is_corrected, repeats, verdict on observations begin
    update observations set is_replaced = exists (select 1 from current_replacements where target = observations.id)
    where id in (select target from replacements where observation = new.id);
end;

create trigger replacements_forget after delete on observations begin
    delete from replacement_subjects where observation = old.id;
    delete from replacements where observation = old.id;
    delete from replacements where target = old.id;
end;
