//! Selects events by filter or ID.

use claude_mem_events::{Event, EventItem, EventReader, Id, Recorded, Seq};
use claude_mem_log::Log as Segments;
use jiff::Timestamp;

use super::Log;
use claude_mem_core::failure::{Failure, nearest};

/// Conditions that every listed event meets.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) since_us: u64,
    until_us: u64,
    session: String,
    project: Option<String>,
    kinds: Vec<&'static str>,
}

impl Selection {
    pub(super) fn new(arguments: &Log, now: Timestamp) -> Result<Self, Failure> {
        Ok(Self {
            since_us: arguments.between.since_us(now).unwrap_or(0),
            until_us: arguments.between.until_us(now).unwrap_or(u64::MAX),
            session: arguments.session.clone().unwrap_or_default(),
            project: arguments.project.clone(),
            kinds: arguments.kind.iter().map(|kind| known_kind(kind)).collect::<Result<_, _>>()?,
        })
    }

    /// Damage could be any event, so it is shown unless a filter other than time is set.
    pub(super) fn includes(&self, met: &EventItem) -> bool {
        match met {
            EventItem::Event(recorded) => self.includes_event(recorded),
            EventItem::Gap(gap) => {
                let is_narrow =
                    !self.session.is_empty() || self.project.is_some() || !self.kinds.is_empty();
                !is_narrow && gap.id.is_none_or(|id| self.is_in_time(id))
            }
        }
    }

    fn includes_event(&self, recorded: &Recorded) -> bool {
        let project = &recorded.envelope.project;
        self.is_in_time(recorded.id)
            && recorded.envelope.session.starts_with(&self.session)
            && self
                .project
                .as_ref()
                .is_none_or(|name| [&project.key, &project.label, &project.root].contains(&name))
            && (self.kinds.is_empty() || self.kinds.contains(&recorded.event.name()))
    }

    fn is_in_time(&self, id: Id) -> bool {
        (self.since_us..self.until_us).contains(&id.time_us())
    }
}

/// The kind with this name; case and `_` do not matter.
fn known_kind(typed: &str) -> Result<&'static str, Failure> {
    let plain = typed.replace(['_', '-'], "");
    let names = || Event::NAMES.iter().copied();
    names().find(|name| name.eq_ignore_ascii_case(&plain)).ok_or_else(|| {
        let failure = Failure::usage(format!("there is no kind of event `{typed}`"));
        match nearest(&plain, names()) {
            Some(name) => failure.remedy(format!("did you mean `{name}`?")),
            None => failure
                .remedy(format!("expected one of {}", names().collect::<Vec<_>>().join(", "))),
        }
    })
}

/// The events with this name: a place, an ID or a prefix of one, or the ID of a tool use.
pub(super) fn find(
    segments: &Segments,
    selection: &Selection,
    name: &str,
) -> Result<Vec<Recorded>, Failure> {
    let place = place(name);
    let mut reader = match (place, Id::parse(name)) {
        (Some(place), _) => EventReader::from(segments, place),
        (None, Some(id)) => EventReader::since(segments, id.time_us())?,
        (None, None) => EventReader::from(segments, Seq::START),
    };
    let mut found = Vec::new();
    while let Some(met) = reader.next()? {
        let EventItem::Event(recorded) = met else { continue };
        if place.is_some_and(|place| recorded.seq > place) {
            break;
        }
        let is_meant = match place {
            Some(place) => recorded.seq == place,
            None => is_named(&recorded, name),
        };
        if is_meant && selection.includes_event(&recorded) {
            found.push(recorded);
        }
    }
    Ok(found)
}

fn place(name: &str) -> Option<Seq> {
    let (segment, offset) = name.split_once(':')?;
    let (segment, offset): (u32, u32) = (segment.parse().ok()?, offset.parse().ok()?);
    (segment < 1 << 31).then(|| Seq::new(segment.into(), offset.into()))
}

fn is_named(recorded: &Recorded, name: &str) -> bool {
    let is_tool = matches!(&recorded.event, Event::ToolUsed(used) if used.tool_use_id == name);
    // A shorter prefix is only a part of the timestamp, and matches a whole day.
    is_tool || name.len() >= 8 && recorded.id.to_string().starts_with(&name.to_lowercase())
}
