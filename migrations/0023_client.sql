-- The client of a session: `codex`, `claude-code`. `platform` also has the number of another host, `codex@2`.

alter table sessions add column client text generated always as (replace(platform, '@' || log, '')) virtual;

-- Notes of Claude Code's auto memory are few, and looked up with prompts.
create index observations_auto_memory on observations (id) where origin = 'auto-memory';
