-- Observations that a later one of the same session corrects. They leave search, lists and context; `show` names
-- what replaced them.

create table corrections (
    seq integer not null,           -- the reply
    number integer not null,        -- in the reply, from 1
    at_us integer not null,
    session integer not null references sessions (id),
    observation integer,            -- the row that replaces; null if the earlier one is only withdrawn
    title text not null,            -- of the earlier one, as the reply names it
    target integer,                 -- the row that is corrected; null if none has the title
    primary key (seq, number)
) strict, without rowid;

create index corrections_by_session on corrections (session);
create index corrections_by_target on corrections (target) where target is not null;
