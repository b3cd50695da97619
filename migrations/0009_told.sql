-- What a session is told when it begins is chosen in the indexes; only the rows that are told are fetched.

drop index summaries_by_project;
create index summaries_by_project on summaries (project, at_us, id, session) where is_visible;

drop index sessions_by_project;
create index sessions_by_project on sessions (project, at_us, forgotten_by);
