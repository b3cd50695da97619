-- Points up to which the log was compacted, and what is not asked again because its raw text is gone.

create table compactions (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    drops_superseded integer not null,
    tools text,                     -- JSON: of these only a digest is kept
    raw_before_us integer           -- and of all before this moment
) strict;

alter table tool_uses add column is_settled integer not null default 0;
alter table stops add column is_settled integer not null default 0;
