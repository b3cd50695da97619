//! The log as a sequence of events.

use crate::{DecodeError, Envelope, Event, Tombstone, codec};
use claude_mem_log::{
    Appended, Appender, Entry, Error, Gap, Id, Item, Log, Options, Reader, Record, Seq,
    format::PAYLOAD_BYTES_MAX,
};
use std::path::Path;

/// An event with its place, id and envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its place in this log.
    pub seq: Seq,
    /// Its id, the same on all machines; contains the time.
    pub id: Id,
    /// Its envelope.
    pub envelope: Envelope,
    /// The event itself.
    pub event: Event,
}

impl Recorded {
    /// The time of the event, in microseconds since 1970.
    pub fn at_us(&self) -> u64 {
        self.id.time_us()
    }

    /// Decodes only the envelope, for counting.
    pub fn envelope_of(entry: &Entry<'_>) -> Envelope {
        Envelope::read(entry.payload).map(|(envelope, _)| envelope).unwrap_or_default()
    }

    /// The schema, codec and payload that record this event again.
    pub fn payload(&self) -> Result<(u16, u8, Vec<u8>), Error> {
        let mut payload = Vec::new();
        let (schema, codec) = encode(&self.envelope, &self.event, &mut payload)?;
        Ok((schema, codec, payload))
    }

    /// Decodes a record. One that cannot be decoded becomes [`Event::Unknown`], intact.
    pub fn from_entry(entry: &Entry<'_>) -> Self {
        let Entry { seq, id, kind, .. } = *entry;
        if entry.is_tombstone {
            let left = Tombstone::read(kind, entry.payload).ok();
            let (envelope, left) = left
                .map_or_else(Default::default, |(envelope, left)| (envelope, Some(Box::new(left))));
            return Self { seq, id, envelope, event: Event::Erased { kind, left } };
        }
        let (envelope, event) = decode(entry).unwrap_or_else(|_| {
            // The envelope can be decoded even if the body is of a newer version.
            let envelope = Envelope::read(entry.payload).map(|(envelope, _)| envelope);
            let unknown = Event::Unknown {
                kind,
                version: entry.schema,
                codec: entry.codec,
                payload: entry.payload.to_vec(),
            };
            (envelope.unwrap_or_default(), unknown)
        });
        Self { seq, id, envelope, event }
    }
}

fn decode(entry: &Entry<'_>) -> Result<(Envelope, Event), DecodeError> {
    if entry.codec != codec::CODEC {
        return Err(DecodeError::Codec(entry.codec));
    }
    let (envelope, body) = Envelope::read(entry.payload)?;
    match Event::read_body(entry.kind, entry.schema, body)? {
        Some(event) => Ok((envelope, event)),
        None => Err(DecodeError::Version { kind: entry.kind, version: entry.schema }),
    }
}

/// Appends events.
#[derive(Debug)]
pub struct EventLog {
    appender: Appender,
    payload: Vec<u8>,
}

impl EventLog {
    /// Prepares to append to the log in `dir`. Reads and writes nothing.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        Ok(Self { appender: Appender::open(dir, options)?, payload: Vec::new() })
    }

    /// Records one event. It survives the death of any process once this returns.
    pub fn record(
        &mut self,
        id: Id,
        envelope: &Envelope,
        event: &Event,
    ) -> Result<Appended, Error> {
        self.payload.clear();
        let (schema, codec) = encode(envelope, event, &mut self.payload)?;
        let record = Record { id, kind: event.kind(), schema, codec, payload: &self.payload };
        match event {
            Event::Erased { .. } => self.appender.append_erased(&record),
            _ => self.appender.append(&record),
        }
    }

    /// Records several events. Those between two erased ones are written by a single `write`.
    pub fn record_all(&mut self, events: &[(Id, Envelope, Event)]) -> Result<(), Error> {
        let is_erased = |event: &Event| matches!(event, Event::Erased { .. });
        for run in events.chunk_by(|(_, _, one), (_, _, next)| !is_erased(one) && !is_erased(next))
        {
            match run {
                [(id, envelope, event)] if is_erased(event) => {
                    self.record(*id, envelope, event)?;
                }
                run => self.record_run(run)?,
            }
        }
        Ok(())
    }

    fn record_run(&mut self, events: &[(Id, Envelope, Event)]) -> Result<(), Error> {
        let encoded = events.iter().map(|(id, envelope, event)| {
            let mut payload = Vec::new();
            let (schema, codec) = encode(envelope, event, &mut payload)?;
            Ok((*id, event.kind(), schema, codec, payload))
        });
        let encoded: Vec<_> = encoded.collect::<Result<_, Error>>()?;
        let records: Vec<_> = encoded
            .iter()
            .map(|(id, kind, schema, codec, payload)| Record {
                id: *id,
                kind: *kind,
                schema: *schema,
                codec: *codec,
                payload,
            })
            .collect();
        self.appender.append_all(&records).map(|_| ())
    }

    /// Returns once everything recorded so far, by any process, is on disk.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.appender.sync()
    }
}

impl Event {
    /// The size of its record; an error if it is too large.
    pub fn payload_bytes(&self, envelope: &Envelope) -> Result<usize, Error> {
        let mut payload = Vec::new();
        encode(envelope, self, &mut payload)?;
        match payload.len() {
            len if len > PAYLOAD_BYTES_MAX => Err(Error::TooLarge { len, max: PAYLOAD_BYTES_MAX }),
            len => Ok(len),
        }
    }
}

/// Encodes the payload; returns its schema and codec.
fn encode(envelope: &Envelope, event: &Event, payload: &mut Vec<u8>) -> Result<(u16, u8), Error> {
    if let Event::Unknown { version, codec, .. } = event {
        // An unknown event is passed on unchanged, including its envelope.
        event.write_body(payload)?;
        return Ok((*version, *codec));
    }
    if let Event::Erased { left, .. } = event {
        let Some(left) = left else { return Ok((0, codec::CODEC)) };
        payload.extend(left.encode(envelope)?);
        return Ok((left.event.as_ref().map_or(0, Event::version), codec::CODEC));
    }
    envelope.write(payload)?;
    event.write_body(payload)?;
    Ok((event.version(), codec::CODEC))
}

/// Reads events in the order of the log.
#[derive(Debug)]
pub struct EventReader {
    reader: Reader,
}

/// What a reader returns.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "gaps are rare; a box for each event is not worth it"
)]
pub enum EventItem {
    /// An event.
    Event(Recorded),
    /// Damage. Reading continues after it.
    Gap(Gap),
}

impl EventReader {
    /// Every event from `from` on.
    pub fn from(log: &Log, from: Seq) -> Self {
        Self { reader: log.read_from(from) }
    }

    /// Every event from `time_us` on.
    pub fn since(log: &Log, time_us: u64) -> Result<Self, Error> {
        Ok(Self { reader: log.read_since(time_us)? })
    }

    /// The next event or gap; `None` at the current end. May be called again later.
    #[expect(
        clippy::should_implement_trait,
        reason = "reading may fail, and may go on after `None`"
    )]
    pub fn next(&mut self) -> Result<Option<EventItem>, Error> {
        Ok(self.reader.next()?.map(|item| match item {
            Item::Record(entry) => EventItem::Event(Recorded::from_entry(&entry)),
            Item::Gap(gap) => EventItem::Gap(gap),
        }))
    }

    /// Continues with the event at `to`, or the first one after it.
    pub fn seek(&mut self, to: Seq) -> Result<(), Error> {
        self.reader.seek(to)
    }

    /// Where reading continues.
    pub fn position(&self) -> Seq {
        self.reader.position()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionEnded;

    fn read_all(dir: &Path) -> Vec<Recorded> {
        let log = Log::open(dir, Options::default()).unwrap();
        let mut reader = EventReader::from(&log, Seq::START);
        std::iter::from_fn(|| match reader.next().unwrap()? {
            EventItem::Event(recorded) => Some(recorded),
            EventItem::Gap(gap) => panic!("{gap}"),
        })
        .collect()
    }

    #[test]
    fn an_event_comes_back_with_its_envelope_and_time() {
        let dir = tempfile::tempdir().unwrap();
        let envelope = Envelope { session: "s".into(), ..Envelope::default() };
        let event = Event::from(SessionEnded { reason: "clear".into(), ..SessionEnded::default() });
        let mut log = EventLog::open(dir.path(), Options::default()).unwrap();
        let id = Id::random(1_763_000_000_000_001);
        let seq = log.record(id, &envelope, &event).unwrap().seq.unwrap();
        assert_eq!(read_all(dir.path()), [Recorded { seq, id, envelope, event }]);
    }

    #[test]
    fn a_tombstone_can_be_recorded_in_another_log() {
        let dir = tempfile::tempdir().unwrap();
        let envelope = Envelope { session: "s".into(), ..Envelope::default() };
        let whole = Event::from(SessionEnded::default());
        let left = Tombstone { bytes: 7, ..Tombstone::of_forgotten(Some(whole.clone())) };
        let kind = whole.kind();
        let erased = |left| Event::Erased { kind, left };
        let events = [
            (Id::new(1, 1), envelope.clone(), whole.clone()),
            (Id::new(2, 2), envelope.clone(), erased(Some(Box::new(left)))),
            (Id::new(3, 3), Envelope::default(), erased(None)),
            (Id::new(4, 4), envelope.clone(), whole.clone()),
            (Id::new(5, 5), envelope, whole),
        ];
        let mut log = EventLog::open(dir.path(), Options::default()).unwrap();
        log.record_all(&events).unwrap();
        let read = read_all(dir.path()).into_iter();
        let read: Vec<_> = read.map(|event| (event.id, event.envelope, event.event)).collect();
        assert_eq!(read, events);
    }

    #[test]
    fn an_event_above_the_limit_is_an_error_and_the_next_one_is_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let envelope = Envelope::default();
        let event = |bytes: usize| {
            Event::from(SessionEnded { reason: "x".repeat(bytes), ..SessionEnded::default() })
        };
        let mut log = EventLog::open(dir.path(), Options::default()).unwrap();
        let too_large = event(17 << 20);
        let refused = log.record(Id::new(1, 1), &envelope, &too_large);
        assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
        let batch = [(Id::new(2, 2), envelope.clone(), too_large)];
        assert!(matches!(log.record_all(&batch), Err(Error::TooLarge { .. })));
        log.record(Id::new(3, 3), &envelope, &event(15 << 20)).unwrap();
        assert_eq!(read_all(dir.path()).len(), 1);
    }

    #[test]
    fn an_event_of_a_newer_version_is_kept_byte_for_byte() {
        let dir = tempfile::tempdir().unwrap();
        let mut payload = Vec::new();
        let envelope = Envelope { session: "s".into(), ..Envelope::default() };
        envelope.write(&mut payload).unwrap();
        payload.extend_from_slice(b"whatever comes");
        let event = Event::Unknown { kind: 999, version: 3, codec: codec::CODEC, payload };
        let mut log = EventLog::open(dir.path(), Options::default()).unwrap();
        log.record(Id::new(1, 1), &Envelope::default(), &event).unwrap();
        let read = read_all(dir.path()).remove(0);
        assert_eq!(read.event, event);
        assert_eq!(read.envelope, envelope);
        log.record(Id::new(2, 2), &read.envelope, &read.event).unwrap();
        assert_eq!(read_all(dir.path())[1].event, event);
    }
}
