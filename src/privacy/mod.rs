//! What may be remembered: everything a hook stores goes through here first.

mod clip;
mod secrets;
mod tags;

pub(crate) use tags::is_only_task_notification;
