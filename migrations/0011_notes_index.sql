-- Index of notes that Claude or a program wrote, as opposed to those of the user.

create index observations_noted on observations (project, at_us) where is_visible and origin in ('claude', 'program');
