//! Taking away from a remote what is not needed there any more.

use std::collections::HashSet;

use tokio::task::JoinSet;

use crate::ship::{
    Shipped,
    remote::Remote,
    remote_head::{self, Head},
};

/// Takes away what the newest manifest no longer names.
pub(super) async fn sweep(
    remote: &Remote,
    head: &Head,
    before: Option<&Head>,
    shipped: &mut Shipped,
) {
    let host = head.host;
    let needed: HashSet<String> = head.objects().into_iter().collect();
    // The manifest before is kept: should the newest be damaged, most of what it names is still there.
    let kept = before.map(|before| host.entry(before.manifest.number));
    let mut names = before.map(Head::objects).unwrap_or_default();
    if let Ok(entries) = remote_head::entries(remote, host).await {
        let older = entries.into_iter().filter(|number| *number < head.number);
        names.extend(older.map(|number| host.entry(number)));
    }
    names.retain(|name| !needed.contains(name) && kept.as_ref() != Some(name));
    delete(remote, names, shipped).await;
}

/// Takes away what nobody names: left by a ship that was stopped half-way. Says whether it could look.
pub(super) async fn sweep_all(remote: &Remote, head: &Head, shipped: &mut Shipped) -> bool {
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

/// Objects deleted at the same time: what counts is how long each takes to answer.
const DELETES_MAX: usize = 16;

/// That something cannot be deleted is no reason not to ship, but it must be said.
async fn delete(remote: &Remote, mut names: Vec<String>, shipped: &mut Shipped) {
    names.sort();
    names.dedup();
    let mut waiting = names.into_iter();
    let mut under_way = JoinSet::new();
    loop {
        while shipped.undeleted.is_none()
            && under_way.len() < DELETES_MAX
            && let Some(name) = waiting.next()
        {
            let remote = remote.clone();
            under_way.spawn(async move {
                remote.delete(&name).await.map_err(|error| format!("{name}: {error}"))
            });
        }
        match under_way.join_next().await {
            None => return,
            Some(Ok(Ok(()))) => shipped.deleted += 1,
            Some(Ok(Err(why))) => shipped.undeleted = Some(why),
            Some(Err(stopped)) => shipped.undeleted = Some(stopped.to_string()),
        }
    }
}
