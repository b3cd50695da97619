-- The files of observations that matter before a file is used: decisions, rules, notes, weaknesses and traps. Triggers
-- update it.

create table observation_files (
    file text not null,             -- relative to the project, if inside it
    project integer not null,
    observation integer not null,
    primary key (file, project, observation)
) strict, without rowid;

create index observation_files_by_observation on observation_files (observation);

create trigger observation_files_insert after insert on observations
when new.type in ('decision', 'rule', 'note', 'security_alert') or instr(new.concepts, '"gotcha"') begin
    insert or ignore into observation_files (file, project, observation)
        select value, new.project, new.id from json_each(new.files_read)
        union select value, new.project, new.id from json_each(new.files_modified);
end;

create trigger observation_files_delete after delete on observations begin
    delete from observation_files where observation = old.id;
end;

create trigger observation_files_update
after update of type, project, concepts, files_read, files_modified on observations begin
    delete from observation_files where observation = old.id;
    insert or ignore into observation_files (file, project, observation)
        select value, new.project, new.id from json_each(new.files_read)
        where new.type in ('decision', 'rule', 'note', 'security_alert') or instr(new.concepts, '"gotcha"')
        union select value, new.project, new.id from json_each(new.files_modified)
        where new.type in ('decision', 'rule', 'note', 'security_alert') or instr(new.concepts, '"gotcha"');
end;
