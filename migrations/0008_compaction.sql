-- Points up to which the log was compacted, and events not distilled again because their content is erased.

create table compactions (
    seq integer primary key,
    event blob not null,
    at_us integer not null,
    drops_superseded integer not null,
    tools text,                     -- JSON: tools of which only a digest is kept
    raw_before_us integer           -- the same for all tools before this time
) strict;

alter table tool_uses add column is_settled integer not null default 0;
alter table stops add column is_settled integer not null default 0;
