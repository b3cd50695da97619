-- Observations that a later one of the same project replaces by rule: decisions that are given up, and lessons about a
-- command that are learned again. Which pair is one depends on the two rows alone, so logs may be folded in any order.

-- What such observations are about: the files of a decision, the commands of a lesson.
create table replacement_subjects (
    project integer not null,
    subject text not null,
    at_us integer not null,
    observation integer not null,
    primary key (project, subject, at_us, observation)
) strict, without rowid;

create index replacement_subjects_by_observation on replacement_subjects (observation);

create table replacements (
    target integer not null,        -- the earlier one
    observation integer not null,   -- the later one
    primary key (target, observation)
) strict, without rowid;

create index replacements_by_observation on replacements (observation);

alter table observations add column is_replaced integer not null default 0;    -- a later one holds instead

-- What was pinned or edited by hand stays.
alter table observations drop column is_retired;
alter table observations add column is_retired integer generated always as
    (coalesce(verdict != 'restored',
        is_corrected or repeats is not null or is_replaced and not is_pinned and not is_edited)) virtual;

-- The later ones that hold: neither wrong, nor withdrawn, nor of another generation.
create view current_replacements as
    select target, observation, at_us, title from replacements
        join observations on observations.id = observation
    where is_visible and not is_corrected and repeats is null and coalesce(verdict != 'wrong', 1);

create trigger replacements_insert after insert on replacements begin
    update observations set is_replaced = exists (select 1 from current_replacements where target = new.target)
    where id = new.target;
end;

create trigger replacements_delete after delete on replacements begin
    update observations set is_replaced = exists (select 1 from current_replacements where target = old.target)
    where id = old.target;
end;

create trigger replacements_mark after update of is_visible, is_corrected, repeats, verdict on observations begin
    update observations set is_replaced = exists (select 1 from current_replacements where target = observations.id)
    where id in (select target from replacements where observation = new.id);
end;

create trigger replacements_forget after delete on observations begin
    delete from replacement_subjects where observation = old.id;
    delete from replacements where observation = old.id;
    delete from replacements where target = old.id;
end;
