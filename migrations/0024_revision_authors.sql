-- Who edited and pinned an observation, if it was not the user: claude, program. What Claude or a
-- program changed is not told as the user's.

alter table revisions add column author text;
alter table observations add column edited_by text;
alter table observations add column pinned_by text;

drop index observations_noted;
create index observations_noted on observations (project, at_us) where is_visible and (origin in ('claude', 'program') or edited_by is not null and (origin = 'user' or type = 'rule'));
