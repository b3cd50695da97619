-- The status of a session: one that was cancelled over the API has failed, and an imported one is not active.

create index sessions_cancelled on sessions (id) where end_reason = 'claude-mem:cancelled';

drop view sdk_sessions;
create view sdk_sessions as
select
    sessions.id,
    sessions.session as content_session_id,
    coalesce(sessions.memory_session, case
        when exists (select 1 from observations where observations.session = sessions.id)
            or exists (select 1 from summaries where summaries.session = sessions.id)
        then 'claude-mem-' || sessions.id end) as memory_session_id,
    coalesce(owners.label, owners.key) as project,
    replace(sessions.platform, '@' || sessions.log, '') as platform_source,
    (select visible_prompts.text from visible_prompts where visible_prompts.session = sessions.id
        order by visible_prompts.number limit 1) as user_prompt,
    sessions.title as custom_title,
    sessions.prompt_number as prompt_counter,
    case
        when end_reason = 'claude-mem:cancelled' then 'failed'
        when ended_at_us is not null and exists (select 1 from tool_uses where tool_uses.session = sessions.id
            and answered_by is null and is_parked) then 'failed'
        when ended_at_us is not null then 'completed'
        when sessions.at_us + 86400000000 <= unixepoch('now') * 1000000 or source = 'import'
            then iif(is_turn_open, 'interrupted', 'completed')
        when sessions.prompt_number = 0 and sessions.tool_uses = 0 and stops = 0 then 'initialized'
        else 'active' end as status,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at_us / 1000000.0, 'unixepoch') as started_at,
    started_at_us / 1000 as started_at_epoch,
    strftime('%Y-%m-%dT%H:%M:%fZ', ended_at_us / 1000000.0, 'unixepoch') as completed_at,
    ended_at_us / 1000 as completed_at_epoch,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at_us / 1000000.0, 'unixepoch') as created_at,
    started_at_us / 1000 as created_at_epoch
from sessions
join projects on projects.id = sessions.project
join projects as owners on owners.id = projects.owner
where sessions.forgotten_by is null;

-- Events of cancelled sessions wait until these continue, and do not count.

create view cancelled_events as
select is_parked from tool_uses
where answered_by is null and host = 0
    and session in (select id from sessions where end_reason = 'claude-mem:cancelled')
union all
select is_parked from stops
where answered_by is null and host = 0 and scope = 'turn'
    and session in (select id from sessions where end_reason = 'claude-mem:cancelled');

create view due_totals as
select
    pending - (select count(*) from cancelled_events where not is_parked) as pending,
    parked - (select count(*) from cancelled_events where is_parked) as parked
from pending_totals;
