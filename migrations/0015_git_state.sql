-- The git state of a session, from the envelopes of its events. Null if none of them has it.

alter table sessions add column branch text;        -- at the last event on a branch
alter table sessions add column first_commit text;  -- HEAD at its first event
alter table sessions add column last_commit text;   -- HEAD at its last event
