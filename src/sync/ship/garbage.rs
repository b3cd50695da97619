//! Garbage collection: deletes objects of a remote that are no longer referenced.

use std::collections::HashSet;

use tokio::task::JoinSet;

use crate::ship::{
    Shipped,
    remote::Remote,
    remote_head::{self, Head},
};

/// Deletes objects that the newest manifest no longer references.
pub(super) async fn collect_garbage(
    remote: &Remote,
    head: &Head,
    before: Option<&Head>,
    shipped: &mut Shipped,
) {
    let host = head.host;
    let needed: HashSet<String> = head.objects().into_iter().collect();
    // The previous manifest is kept: if the newest is damaged, most of its parts still exist.
    let kept = before.map(|before| host.entry(before.manifest.number));
    let mut names = before.map(Head::objects).unwrap_or_default();
    if let Ok(entries) = remote_head::entries(remote, host).await {
        let older = entries.into_iter().filter(|number| *number < head.number);
        names.extend(older.map(|number| host.entry(number)));
    }
    names.retain(|name| !needed.contains(name) && kept.as_ref() != Some(name));
    delete(remote, names, shipped).await;
}

/// Deletes unreferenced objects of interrupted uploads. Returns whether the listing succeeded.
pub(super) async fn collect_all_garbage(
    remote: &Remote,
    head: &Head,
    shipped: &mut Shipped,
) -> bool {
    let needed: HashSet<String> = head.objects().into_iter().collect();
    match remote.list(&format!("{}/seg", head.host.folder())).await {
        Ok(mut names) => {
            names.retain(|name| !needed.contains(name));
            delete(remote, names, shipped).await;
            true
        }
        Err(error) => {
            shipped.undeleted = Some(error.to_string());
            false
        }
    }
}

/// Parallel deletions: latency dominates.
const DELETES_MAX: usize = 16;

/// A failed deletion does not stop shipping, but is reported.
async fn delete(remote: &Remote, mut names: Vec<String>, shipped: &mut Shipped) {
    names.sort();
    names.dedup();
    let mut waiting = names.into_iter();
    let mut running = JoinSet::new();
    loop {
        while shipped.undeleted.is_none()
            && running.len() < DELETES_MAX
            && let Some(name) = waiting.next()
        {
            let remote = remote.clone();
            running.spawn(async move {
                remote.delete(&name).await.map_err(|error| format!("{name}: {error}"))
            });
        }
        match running.join_next().await {
            None => return,
            Some(Ok(Ok(()))) => shipped.deleted += 1,
            Some(Ok(Err(why))) => shipped.undeleted = Some(why),
            Some(Err(stopped)) => shipped.undeleted = Some(stopped.to_string()),
        }
    }
}
