-- How many events of our own log are pending and parked, kept current by triggers: hooks, status and the
-- worker ask, and there can be a million. The end of a subagent alone causes no request, so it does not count.

create table pending_totals (
    one integer primary key check (one = 1),
    pending integer not null,
    parked integer not null
) strict;

insert into pending_totals select 1, coalesce(sum(not is_parked), 0), coalesce(sum(is_parked), 0) from (
    select is_parked from tool_uses where answered_by is null and host = 0
    union all select is_parked from stops where answered_by is null and host = 0 and scope = 'turn'
);

create trigger tool_uses_pending_insert after insert on tool_uses
when new.answered_by is null and new.host = 0 begin
    update pending_totals set pending = pending + not new.is_parked, parked = parked + new.is_parked;
end;

create trigger tool_uses_pending_update after update of answered_by, is_parked on tool_uses
when new.host = 0 begin
    update pending_totals set
        pending = pending + (new.answered_by is null and not new.is_parked)
            - (old.answered_by is null and not old.is_parked),
        parked = parked + (new.answered_by is null and new.is_parked)
            - (old.answered_by is null and old.is_parked);
end;

create trigger tool_uses_pending_delete after delete on tool_uses
when old.answered_by is null and old.host = 0 begin
    update pending_totals set pending = pending - not old.is_parked, parked = parked - old.is_parked;
end;

create trigger stops_pending_insert after insert on stops
when new.answered_by is null and new.host = 0 and new.scope = 'turn' begin
    update pending_totals set pending = pending + not new.is_parked, parked = parked + new.is_parked;
end;

create trigger stops_pending_update after update of answered_by, is_parked on stops
when new.host = 0 and new.scope = 'turn' begin
    update pending_totals set
        pending = pending + (new.answered_by is null and not new.is_parked)
            - (old.answered_by is null and not old.is_parked),
        parked = parked + (new.answered_by is null and new.is_parked)
            - (old.answered_by is null and old.is_parked);
end;

create trigger stops_pending_delete after delete on stops
when old.answered_by is null and old.host = 0 and old.scope = 'turn' begin
    update pending_totals set pending = pending - not old.is_parked, parked = parked - old.is_parked;
end;

-- The oldest pending event.
create index tool_uses_pending on tool_uses (at_us)
    where answered_by is null and not is_parked and seq < 36028797018963968;
create index stops_pending on stops (at_us)
    where answered_by is null and not is_parked and scope = 'turn' and seq < 36028797018963968;

-- The stops of a session, turn by turn, for planning.
create index stops_by_turn on stops (session, turn, seq) where scope = 'turn';
