-- Statistics count events by project and day, and tool uses by day, in these indexes alone.

create index events_by_project on events (project, at_us);
create index tool_uses_by_time on tool_uses (at_us, project, bytes);
