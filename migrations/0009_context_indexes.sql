-- Covering indexes for the context of a new session: only the chosen rows are read from the tables.

drop index summaries_by_project;
create index summaries_by_project on summaries (project, at_us, id, session) where is_visible;

drop index sessions_by_project;
create index sessions_by_project on sessions (project, at_us, forgotten_by);
