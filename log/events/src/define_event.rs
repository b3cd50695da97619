//! What every event defines: its number on disk, the versions of its body, and which of its fields
//! contain text.

use crate::DecodeError;
use serde::Serialize;

/// An event whose body has versions.
pub trait Versioned: Sized + Serialize + VisitTexts {
    /// Its number on disk. Never reused.
    const KIND: u16;
    /// The version we write. Older versions stay readable.
    const VERSION: u16;
    /// Decodes a body of any version so far.
    fn read(version: u16, body: &[u8]) -> Result<Self, DecodeError>;
}

/// How a text is to be read when it is redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// As it is.
    Plain,
    /// JSON, or plain if it is not valid.
    Json,
    /// The reply of a model, element by element.
    Reply,
    /// A path, which may be a URL that lost a slash.
    Path,
}

/// Visits every text that a user, a tool or a model may have written.
pub trait VisitTexts {
    /// Calls `visit` with each text.
    fn visit_texts(&mut self, visit: &mut dyn FnMut(TextForm, &mut String));
}

impl<T: VisitTexts> VisitTexts for Vec<T> {
    fn visit_texts(&mut self, visit: &mut dyn FnMut(TextForm, &mut String)) {
        for one in self {
            one.visit_texts(visit);
        }
    }
}

impl<T: VisitTexts> VisitTexts for Option<T> {
    fn visit_texts(&mut self, visit: &mut dyn FnMut(TextForm, &mut String)) {
        if let Some(one) = self {
            one.visit_texts(visit);
        }
    }
}

impl VisitTexts for String {
    fn visit_texts(&mut self, visit: &mut dyn FnMut(TextForm, &mut String)) {
        visit(TextForm::Plain, self);
    }
}

/// Lists all fields of a type: `text`, `json`, `reply`, `path`, or `none` for a field without text.
/// A field that is missing here does not compile.
macro_rules! visit_texts {
    ($name:ident { $($field:ident: $form:ident),* $(,)? }) => {
        impl crate::VisitTexts for $name {
            #[allow(unused_variables, reason = "some events have no text")]
            fn visit_texts(&mut self, visit: &mut dyn FnMut(crate::TextForm, &mut String)) {
                let Self { $($field),* } = self;
                $(visit_texts!(@$form $field visit);)*
            }
        }
    };
    (@none $field:ident $visit:ident) => {};
    (@text $field:ident $visit:ident) => { crate::VisitTexts::visit_texts($field, $visit) };
    (@json $field:ident $visit:ident) => { $visit(crate::TextForm::Json, $field) };
    (@reply $field:ident $visit:ident) => { $visit(crate::TextForm::Reply, $field) };
    (@path $field:ident $visit:ident) => { $visit(crate::TextForm::Path, $field) };
}

/// Defines an event: its number on disk, the type of each version, and its fields.
macro_rules! define_event {
    (
        $name:ident = $kind:literal { $($version:literal => $body:ty),+ }
        texts { $($fields:tt)* }
    ) => {
        impl crate::Versioned for $name {
            const KIND: u16 = $kind;
            const VERSION: u16 = {
                let versions = [$($version),+];
                versions[versions.len() - 1]
            };

            fn read(version: u16, body: &[u8]) -> Result<Self, crate::DecodeError> {
                match version {
                    $($version => crate::codec::read::<$body>(body).map(Self::from),)+
                    _ => Err(crate::DecodeError::Version { kind: Self::KIND, version }),
                }
            }
        }

        visit_texts!($name { $($fields)* });
    };
}

/// Checks the bytes of an event. They are on users' disks: if this fails, add a version; do not
/// edit the bytes.
#[cfg(test)]
pub(crate) fn assert_bytes<E: Versioned + PartialEq + std::fmt::Debug>(event: &E, expected: &str) {
    let mut bytes = Vec::new();
    crate::codec::write(event, &mut bytes).unwrap();
    assert_eq!(bytes.escape_ascii().to_string(), expected);
    assert_eq!(E::read(E::VERSION, &bytes).as_ref(), Ok(event));
    assert!(E::read(E::VERSION + 1, &bytes).is_err());
}
