-- Which observations a session was given in full, and when. An observation is named by its event and its number there.

create table injections (
    seq integer not null,
    position integer not null,      -- in the text, from 1
    at_us integer not null,
    session integer references sessions (id),
    project integer not null references projects (id),
    moment text not null,           -- session start, prompt
    event blob not null,            -- the reply, note or import
    number integer not null,
    primary key (seq, position)
) strict, without rowid;

create index injections_by_session on injections (session);
create index injections_by_observation on injections (event, number);
