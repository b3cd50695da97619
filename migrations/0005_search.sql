-- Full-text indexes over visible rows. The text stays in its table; triggers update the index. A rebuild
-- drops the triggers, fills the tables, builds each index at once and creates the triggers again.
-- `identifiers` holds the parts of compound names, `grams` character pairs of scripts without spaces; both
-- are columns of the tables, so that the index can be checked against them. `scope` is one word for the
-- project, so that a search within a project does not read the postings of all others.

create virtual table observations_fts using fts5 (
    title, subtitle, narrative, facts, concepts, files_read, files_modified, identifiers, grams, scope,
    content = 'visible_observations', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

create virtual table summaries_fts using fts5 (
    request, investigated, learned, completed, next_steps, notes, files_read, files_edited, identifiers, grams, scope,
    content = 'visible_summaries', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

create virtual table prompts_fts using fts5 (
    text, identifiers, grams, scope,
    content = 'visible_prompts', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Forgotten text is removed from the index at once, not when its segments are merged.
insert into observations_fts (observations_fts, rank) values ('secure-delete', 1);
insert into summaries_fts (summaries_fts, rank) values ('secure-delete', 1);
insert into prompts_fts (prompts_fts, rank) values ('secure-delete', 1);

create trigger observations_fts_insert after insert on observations when new.is_visible begin
    insert into observations_fts
        (rowid, title, subtitle, narrative, facts, concepts, files_read, files_modified, identifiers, grams, scope)
    values (new.id, new.title, new.subtitle, new.narrative, new.facts, new.concepts, new.files_read,
        new.files_modified, new.identifiers, new.grams, 'inproject' || new.project);
end;

create trigger observations_fts_delete after delete on observations when old.is_visible begin
    insert into observations_fts (observations_fts, rowid, title, subtitle, narrative, facts, concepts,
        files_read, files_modified, identifiers, grams, scope)
    values ('delete', old.id, old.title, old.subtitle, old.narrative, old.facts, old.concepts,
        old.files_read, old.files_modified, old.identifiers, old.grams, 'inproject' || old.project);
end;

create trigger observations_fts_hide after update of is_visible on observations
when old.is_visible and not new.is_visible begin
    insert into observations_fts (observations_fts, rowid, title, subtitle, narrative, facts, concepts,
        files_read, files_modified, identifiers, grams, scope)
    values ('delete', old.id, old.title, old.subtitle, old.narrative, old.facts, old.concepts,
        old.files_read, old.files_modified, old.identifiers, old.grams, 'inproject' || old.project);
end;

create trigger observations_fts_show after update of is_visible on observations
when new.is_visible and not old.is_visible begin
    insert into observations_fts
        (rowid, title, subtitle, narrative, facts, concepts, files_read, files_modified, identifiers, grams, scope)
    values (new.id, new.title, new.subtitle, new.narrative, new.facts, new.concepts, new.files_read,
        new.files_modified, new.identifiers, new.grams, 'inproject' || new.project);
end;

create trigger summaries_fts_insert after insert on summaries when new.is_visible begin
    insert into summaries_fts (rowid, request, investigated, learned, completed, next_steps, notes,
        files_read, files_edited, identifiers, grams, scope)
    values (new.id, new.request, new.investigated, new.learned, new.completed, new.next_steps, new.notes,
        new.files_read, new.files_edited, new.identifiers, new.grams, 'inproject' || new.project);
end;

create trigger summaries_fts_delete after delete on summaries when old.is_visible begin
    insert into summaries_fts (summaries_fts, rowid, request, investigated, learned, completed, next_steps,
        notes, files_read, files_edited, identifiers, grams, scope)
    values ('delete', old.id, old.request, old.investigated, old.learned, old.completed, old.next_steps,
        old.notes, old.files_read, old.files_edited, old.identifiers, old.grams, 'inproject' || old.project);
end;

create trigger summaries_fts_hide after update of is_visible on summaries
when old.is_visible and not new.is_visible begin
    insert into summaries_fts (summaries_fts, rowid, request, investigated, learned, completed, next_steps,
        notes, files_read, files_edited, identifiers, grams, scope)
    values ('delete', old.id, old.request, old.investigated, old.learned, old.completed, old.next_steps,
        old.notes, old.files_read, old.files_edited, old.identifiers, old.grams, 'inproject' || old.project);
end;

create trigger summaries_fts_show after update of is_visible on summaries
when new.is_visible and not old.is_visible begin
    insert into summaries_fts (rowid, request, investigated, learned, completed, next_steps, notes,
        files_read, files_edited, identifiers, grams, scope)
    values (new.id, new.request, new.investigated, new.learned, new.completed, new.next_steps, new.notes,
        new.files_read, new.files_edited, new.identifiers, new.grams, 'inproject' || new.project);
end;

create trigger prompts_fts_insert after insert on prompts
when new.text is not null and new.submitter != 'task' begin
    insert into prompts_fts (rowid, text, identifiers, grams, scope)
    values (new.id, new.text, new.identifiers, new.grams, 'inproject' || new.project);
end;

create trigger prompts_fts_delete after delete on prompts
when old.text is not null and old.submitter != 'task' begin
    insert into prompts_fts (prompts_fts, rowid, text, identifiers, grams, scope)
    values ('delete', old.id, old.text, old.identifiers, old.grams, 'inproject' || old.project);
end;
