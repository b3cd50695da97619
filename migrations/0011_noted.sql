-- Notes that Claude or a program wrote are told apart from those of the user.

create index observations_noted on observations (project, at_us) where is_visible and origin in ('claude', 'program');
