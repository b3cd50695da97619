//! `claude-mem` alone at a terminal: search while you type.
//!
//! Each key searches by words, as the viewer does while typing. Memories near by meaning are added
//! below after a short pause, because embedding a query takes longer than a key should. So no row
//! moves under the cursor.

mod screen;

use std::{
    env, io,
    process::{Command, Stdio},
    time::Duration,
};

use claude_mem_projections::{
    Store,
    details::MemoryDetails,
    search::{Hit, MemoryId, Query, Search, SearchResults},
};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use screen::{Frame, Screen};

use super::{
    hit_labels::{ago, colour, label, marked, plain},
    memory_rows::{MemoryRow, memory_line},
    show,
};
use claude_mem_core::{
    app::App,
    failure::Failure,
    format::count,
    safe_text::clean,
    wrap::{fit, width, wrap},
};
use claude_mem_memory::{
    search::{ProjectScope, SearchResponse, matches, search},
    semantic::Ranking,
    store,
};

/// Without a key for this long, the query is searched by meaning, too.
const PAUSE: Duration = Duration::from_millis(400);
/// How often to look for a new size of the terminal, where it is not announced.
const IDLE: Duration = Duration::from_secs(60);
/// Each costs a fraction of a millisecond at every key.
const HITS_MAX: usize = 40;
/// With fewer rows there is no preview.
const PREVIEW_ROWS_MIN: usize = 14;
/// From this width on, the preview is next to the list, else below it.
const WIDE_COLUMNS_MIN: usize = 120;

/// A narrow terminal has the first ones and the last one.
const KEYS: [&str; 5] = ["Enter show", "↑↓ move", "^Y copy", "^O viewer", "Esc leave"];
const KEYS_OPEN: [&str; 4] = ["↑↓ scroll", "y copy", "o viewer", "Esc back"];
const PROJECT_COLUMNS_MAX: usize = 16;

/// Runs until the user leaves.
pub(super) fn run(app: &mut App) -> Result<(), Failure> {
    let store = store::read_folded(app)?;
    let mut live = LiveSearch::new(app, &store);
    live.find()?;
    let failed = |error: io::Error| Failure::new(format!("the terminal cannot be used: {error}"));
    let mut screen = Screen::open().map_err(failed)?;
    loop {
        let frame = live.frame(Screen::size());
        screen.draw(&frame).map_err(failed)?;
        if !event::poll(if live.lacks_meaning { PAUSE } else { IDLE }).map_err(failed)? {
            live.add_meaning()?;
            continue;
        }
        let query = live.query.clone();
        // Keys that were typed during a search are taken together.
        loop {
            if let Event::Key(key) = event::read().map_err(failed)?
                && key.kind != KeyEventKind::Release
            {
                match live.key(key) {
                    Action::Stay => {}
                    Action::Leave => return Ok(()),
                    Action::Copy(text) => screen.copy(&text).map_err(failed)?,
                }
            }
            if !event::poll(Duration::ZERO).map_err(failed)? {
                break;
            }
        }
        if live.query != query {
            live.find()?;
        }
    }
}

/// What the event loop does after a key.
enum Action {
    Stay,
    Leave,
    Copy(String),
}

struct LiveSearch<'a> {
    app: &'a App,
    store: &'a Store,
    query: String,
    parsed: Query,
    /// Whether the last search was by words alone.
    lacks_meaning: bool,
    hits: Vec<Hit>,
    found: String,
    selected: usize,
    /// The first hit and, in an opened memory, the first line on the screen.
    top: usize,
    /// The lines of the opened memory.
    opened: Option<Vec<String>>,
    opened_top: usize,
    message: Option<String>,
    rows: usize,
}

impl<'a> LiveSearch<'a> {
    fn new(app: &'a App, store: &'a Store) -> Self {
        Self {
            app,
            store,
            query: String::new(),
            parsed: Query::default(),
            lacks_meaning: false,
            hits: Vec::new(),
            found: String::new(),
            selected: 0,
            top: 0,
            opened: None,
            opened_top: 0,
            message: None,
            rows: 0,
        }
    }

    /// Searches by words; the last one may be the start of a word.
    fn find(&mut self) -> Result<(), Failure> {
        let found = self.search(true)?.results;
        // The completions of a single letter are not looked up.
        if found.hits.is_empty() && self.query.trim().chars().count() == 1 {
            self.found = "type another letter".into();
            self.lacks_meaning = false;
            return Ok(());
        }
        // A hit represents all matches of its turn.
        let turns = match found.has_more || found.hits.len() >= found.matched {
            true => String::new(),
            false => format!(" in {}", count(found.hits.len(), "turn")),
        };
        let has_words = !self.query.trim().is_empty();
        self.found = match (found.hits.is_empty(), has_words) {
            (true, true) => "no match".into(),
            (false, true) => matches(&found) + &turns,
            (true, false) => String::new(),
            (false, false) => "type to search; the newest first".into(),
        };
        (self.parsed, self.hits) = (found.query, found.hits);
        (self.selected, self.top) = (0, 0);
        self.lacks_meaning = has_words;
        Ok(())
    }

    /// Adds what is near by meaning, below.
    fn add_meaning(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.lacks_meaning) {
            return Ok(());
        }
        let found = self.search(false)?;
        if found.ranking != Ranking::WordsAndMeaning {
            return Ok(());
        }
        let SearchResults { hits: mut more, near, .. } = found.results;
        more.retain(|hit| self.hits.iter().all(|known| known.name != hit.name));
        if near > 0 && !more.is_empty() {
            self.found = format!("{} and {near} by meaning", self.found);
        }
        self.hits.extend(more);
        Ok(())
    }

    fn search(&self, is_typing: bool) -> Result<SearchResponse, Failure> {
        let request =
            Search { query: self.query.clone(), is_typing, limit: HITS_MAX, ..Search::default() };
        let mut found = search(self.app, self.store, ProjectScope::Requested, &request)?;
        if self.query.trim().is_empty() {
            // Without words, hits are not grouped by turn. The memories of a turn have one time.
            let same = |one: &mut Hit, other: &mut Hit| {
                one.session.is_some() && one.session == other.session && one.at_us == other.at_us
            };
            found.results.hits.dedup_by(same);
        }
        Ok(found)
    }

    fn hit(&self) -> Option<&Hit> {
        self.hits.get(self.selected)
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        self.message = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.opened.is_some()) {
            (KeyCode::Char('c'), _) if is_control => return Action::Leave,
            (KeyCode::Char('y'), is_open) if is_control || is_open => return self.copy(),
            (KeyCode::Char('o'), is_open) if is_control || is_open => return self.open_viewer(),
            (KeyCode::Char('n'), _) if is_control => self.go(1),
            (KeyCode::Char('p'), _) if is_control => self.go(-1),
            (KeyCode::Char('u'), false) if is_control => self.query.clear(),
            (KeyCode::Char('w'), false) if is_control => {
                let kept = self.query.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.query.truncate(kept);
            }
            (KeyCode::Down, _) => self.go(1),
            (KeyCode::Up, _) => self.go(-1),
            (KeyCode::PageDown | KeyCode::Char(' '), true) | (KeyCode::PageDown, false) => {
                self.go(self.page());
            }
            (KeyCode::PageUp, _) => self.go(-self.page()),
            (KeyCode::Home, _) => self.go(isize::MIN),
            (KeyCode::End, _) => self.go(isize::MAX),
            (KeyCode::Enter, false) => self.opened = self.whole(),
            (KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('q'), true) => self.opened = None,
            (KeyCode::Esc, false) => return Action::Leave,
            (KeyCode::Backspace, false) => {
                self.query.pop();
            }
            (KeyCode::Char(letter), false) if !is_control => self.query.push(letter),
            _ => {}
        }
        if self.opened.is_none() {
            self.opened_top = 0;
        }
        Action::Stay
    }

    fn page(&self) -> isize {
        (self.rows / 2).max(1) as isize
    }

    fn go(&mut self, by: isize) {
        let (at, end) = match &self.opened {
            Some(lines) => {
                (&mut self.opened_top, lines.len().saturating_sub(self.rows.saturating_sub(2)))
            }
            None => (&mut self.selected, self.hits.len().saturating_sub(1)),
        };
        *at = at.saturating_add_signed(by).min(end);
    }

    fn details(&self) -> Option<MemoryDetails> {
        let name: MemoryId = self.hit()?.name;
        self.store.details(&[name]).ok()?.pop()
    }

    /// The selected memory as `claude-mem show` prints it.
    fn whole(&self) -> Option<Vec<String>> {
        let details = self.details()?;
        let text = show::text(self.app, self.store, &details);
        Some(self.app.output.printable(&text).lines().map(ToOwned::to_owned).collect())
    }

    fn copy(&mut self) -> Action {
        let Some(details) = self.details() else { return Action::Stay };
        let text = self.app.output.unpainted(&show::brief(&details, &self.app.output));
        self.message = Some(format!("copied {}", details.name));
        Action::Copy(clean(text.trim_end()).into_owned())
    }

    /// Opens the selected memory in the viewer, in a separate process: it prints, and may have to
    /// start the worker.
    fn open_viewer(&mut self) -> Action {
        let page = self.hit().map(|hit| hit.name.to_string());
        let ran = env::current_exe().and_then(|program| {
            Command::new(program).arg("viewer").args(page).stdin(Stdio::null()).output()
        });
        let ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                self.message = Some(format!("the viewer cannot be opened: {error}"));
                return Action::Stay;
            }
        };
        let [link, said] = [ran.stdout, ran.stderr]
            .map(|bytes| clean(String::from_utf8_lossy(&bytes).trim()).into_owned());
        if link.is_empty() {
            self.message = said.lines().next().map(ToOwned::to_owned);
            return Action::Stay;
        }
        // There is no browser here, as over SSH. A link that is cut is of no use.
        self.opened = Some(vec![said, String::new(), link.clone()]);
        self.opened_top = 0;
        self.message = Some("copied the link".into());
        Action::Copy(link)
    }

    /// Everything on the screen.
    fn frame(&mut self, (columns, rows): (usize, usize)) -> Frame {
        self.rows = rows;
        let output = &self.app.output;
        let keys = if self.opened.is_some() { &KEYS_OPEN[..] } else { &KEYS[..] };
        let last = self.message.clone().unwrap_or_else(|| key_line(keys, columns));
        let last = output.printable(&output.dim(&last));
        if let Some(opened) = &self.opened {
            let text = opened.iter().map(|line| wrap(line, columns)).collect::<Vec<_>>().join("\n");
            let lines: Vec<String> = text.lines().flat_map(|line| broken(line, columns)).collect();
            self.opened_top = self.opened_top.min(lines.len().saturating_sub(1));
            let body = lines.into_iter().skip(self.opened_top).take(rows.saturating_sub(1));
            return Frame { lines: body.collect(), last, cursor: None };
        }
        let room = rows.saturating_sub(2);
        let has_preview = rows >= PREVIEW_ROWS_MIN;
        let is_wide = has_preview && columns >= WIDE_COLUMNS_MIN;
        let list_rows = if has_preview && !is_wide { room / 2 } else { room };
        let list_columns = if is_wide { columns / 2 } else { columns };
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(list_rows));
        let prompt = format!("> {}", clean(&self.query));
        let cursor = width(&prompt).min(columns.saturating_sub(1));
        let found = output.printable(&output.dim(&format!("   {}", self.found)));
        let mut lines = vec![format!("{prompt}{found}")];
        let now = self.app.clock.now();
        let visible = self.hits.iter().enumerate().skip(self.top).take(list_rows);
        let id_columns = self.hits.iter().map(|hit| hit.name.to_string().len()).max().unwrap_or(0);
        let has_projects = self.hits.windows(2).any(|pair| pair[0].project != pair[1].project);
        let projects = self.hits.iter().map(|hit| width(&hit.project)).max().unwrap_or(0);
        for (at, hit) in visible {
            let project = fit(&plain(&hit.project), projects.min(PROJECT_COLUMNS_MAX));
            let row = MemoryRow {
                id: format!("{:>id_columns$}", hit.name.to_string()),
                time: format!("{:>3}", ago(hit.at_us, now)),
                project: if has_projects { project } else { String::new() },
                label: format!("{:9}", label(hit)),
                colour: colour(hit),
                title: hit.marked_title(),
                ..MemoryRow::default()
            };
            let sign = if at == self.selected { "▶ " } else { "  " };
            let mark = |text: &str| match at == self.selected {
                true => output.paint("1", text),
                false => marked(&self.parsed, text, output),
            };
            let line = memory_line(output, list_columns.saturating_sub(2), &row, mark);
            lines.push(format!("{sign}{}", output.printable(&line)));
        }
        if self.hits.is_empty() && self.query.is_empty() {
            lines.push("no memories yet; the next recorded session adds the first ones".to_owned());
            lines.push("`claude-mem status` shows whether sessions are recorded".to_owned());
        }
        if has_preview {
            lines.resize(list_rows + 1, String::new());
        }
        if is_wide {
            let bar = output.printable(&output.dim("│"));
            let preview = self.preview(columns - list_columns - 3);
            let mut preview = preview.lines();
            for line in lines.iter_mut().skip(1) {
                let padding = " ".repeat(list_columns.saturating_sub(width(line)));
                *line = format!("{line}{padding} {bar} {}", preview.next().unwrap_or_default());
            }
        } else if has_preview {
            lines.push(output.printable(&output.dim(&"─".repeat(columns))));
            let left = rows.saturating_sub(lines.len() + 1);
            lines.extend(self.preview(columns).lines().take(left).map(ToOwned::to_owned));
        }
        Frame { lines, last, cursor: Some(cursor) }
    }

    /// The selected memory, wrapped.
    fn preview(&self, columns: usize) -> String {
        let output = &self.app.output;
        let text = self.details().map(|details| show::brief(&details, output));
        wrap(&output.printable(&text.unwrap_or_default()), columns)
    }
}

/// As many keys as fit.
fn key_line(keys: &[&str], columns: usize) -> String {
    let [first @ .., last] = keys else { return String::new() };
    let lines = (0..=first.len()).rev().map(|number| [&first[..number], &[last]].concat());
    let mut fitting = lines.map(|keys| keys.join(" · ")).skip_while(|line| width(line) > columns);
    fitting.next().unwrap_or_default()
}

/// A line in pieces of at most this many columns, if it is a word that is longer, such as a link.
fn broken(line: &str, columns: usize) -> Vec<String> {
    if width(line) <= columns || line.contains([' ', '\x1b']) {
        return vec![line.to_owned()];
    }
    let letters: Vec<char> = line.chars().collect();
    letters.chunks(columns.max(1)).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_left_out_instead_of_cut() {
        assert_eq!(key_line(&KEYS, 80), KEYS.join(" · "));
        assert_eq!(key_line(&KEYS, 40), "Enter show · ↑↓ move · Esc leave");
        assert_eq!(key_line(&KEYS, 5), "");
    }
}
