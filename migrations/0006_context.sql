-- What a session is given when it begins is chosen in a few milliseconds, however much is remembered.

create index observations_by_hand on observations (project, at_us) where is_visible and origin = 'user';
