-- Views with the names and columns of the TypeScript claude-mem, for queries written for it. They are
-- read-only. `created_at` is ISO 8601 in UTC, `created_at_epoch` counts milliseconds.
--
-- There, every memory refers to its session by `memory_session_id`. Providers without a conversation have no
-- such id, so it is derived from the row id of the session once it has a memory. Until then, and for notes
-- written outside a session, it is null.

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

create view user_prompts as
select
    visible_prompts.id,
    sessions.id as session_db_id,
    sessions.session as content_session_id,
    visible_prompts.number as prompt_number,
    visible_prompts.text as prompt_text,
    strftime('%Y-%m-%dT%H:%M:%fZ', visible_prompts.at_us / 1000000.0, 'unixepoch') as created_at,
    visible_prompts.at_us / 1000 as created_at_epoch
from visible_prompts
join sessions on sessions.id = visible_prompts.session;

-- `observations` is one of our tables, with other columns.
create view sdk_observations as
select
    memories.id,
    sdk_sessions.memory_session_id,
    coalesce(owners.label, owners.key) as project,
    memories.type,
    memories.title,
    memories.subtitle,
    memories.narrative,
    memories.facts,
    memories.concepts,
    memories.files_read,
    memories.files_modified,
    memories.prompt_number,
    memories.tokens as discovery_tokens,
    memories.model as generated_by_model,
    memories.agent_type,
    memories.metadata,
    strftime('%Y-%m-%dT%H:%M:%fZ', memories.at_us / 1000000.0, 'unixepoch') as created_at,
    memories.at_us / 1000 as created_at_epoch
from visible_observations as memories
left join sdk_sessions on sdk_sessions.id = memories.session
join projects on projects.id = memories.project
join projects as owners on owners.id = projects.owner;

create view session_summaries as
select
    memories.id,
    sdk_sessions.memory_session_id,
    coalesce(owners.label, owners.key) as project,
    memories.request,
    memories.investigated,
    memories.learned,
    memories.completed,
    memories.next_steps,
    memories.notes,
    memories.files_read,
    memories.files_edited,
    memories.prompt_number,
    memories.tokens as discovery_tokens,
    strftime('%Y-%m-%dT%H:%M:%fZ', memories.at_us / 1000000.0, 'unixepoch') as created_at,
    memories.at_us / 1000 as created_at_epoch
from visible_summaries as memories
left join sdk_sessions on sdk_sessions.id = memories.session
join projects on projects.id = memories.project
join projects as owners on owners.id = projects.owner;

-- Statistics of nearly empty tables make the planner scan them after they have grown: full-text merges then read
-- the whole index each time. The first statement ensures that the table of statistics exists.
analyze projections;
delete from sqlite_stat1 where cast(stat as integer) < 1000;
