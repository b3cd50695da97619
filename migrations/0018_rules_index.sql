-- Index of observed rules of the user: they are in the context of a session whatever their age.

create index observations_rules on observations (project, at_us) where is_visible and type = 'rule';
