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
    by_number integer
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

-- Observations that were forgotten. A revision of one of them may arrive later, from another machine.
create table forgotten_observations (
    event blob not null,
    number integer not null,
    forgetting integer not null,    -- seq
    primary key (event, number)
) strict, without rowid;

alter table observations add column is_pinned integer not null default 0;
alter table observations add column is_edited integer not null default 0;
alter table observations add column verdict text;                   -- of the user: wrong, superseded, restored
alter table observations add column is_corrected integer not null default 0;    -- a later reply replaced or withdrew it
alter table observations add column repeats integer;                -- the revised observation with the same content
-- Retired observations are found with a mark, and given to no session.
alter table observations add column is_retired integer generated always as
    (coalesce(verdict != 'restored', is_corrected or repeats is not null)) virtual;

create index observations_revised on observations (id)
    where is_pinned or is_edited or verdict is not null or repeats is not null;
create index observations_pinned on observations (project, at_us) where is_pinned;
