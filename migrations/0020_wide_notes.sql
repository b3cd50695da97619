-- Notes that count in more than their project.

alter table observations add column tree text;  -- null: its project only; empty: every project; else: those below this folder

create index observations_wide on observations (at_us) where is_visible and tree is not null;
