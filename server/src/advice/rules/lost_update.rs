//! A write that overwrites what another session wrote since the read.

use std::mem;

use minikeeper_protocol::{CreateMode, OpCode, SessionId};

use super::{
    AdviceRule, ClientStep, FactTable, Finder, HABIT, HARM, HeldLock, HeldLocks, PROVEN, Request,
    Scene, parent_of,
};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "lost-update",
    title: "data read, then written without its version",
    why: "what another client wrote in between is lost",
    remedy: "pass the version of the read to setData, and start again after BADVERSION",
    occurrences_min: 5,
};

#[derive(Debug, Default)]
pub(super) struct LostUpdate {
    locks: HeldLocks,
    /// Whether a session may hold locks that are not known, because the journal does not have all entries.
    may_hold: FactTable<bool>,
    uses: FactTable<LastRead>,
    paths: FactTable<Rewrites>,
}

/// The last getData of a path that succeeded and was not followed by a write, and the locks held at that time.
#[derive(Debug, Default)]
struct LastRead {
    number: u64,
    locks: Vec<HeldLock>,
}

/// Who reads, then writes a path without a version.
#[derive(Debug, Default)]
struct Rewrites {
    /// The last session that did.
    by: Option<SessionId>,
    /// The locks that every session held which did; `None` if none did.
    under: Option<Vec<String>>,
}

impl Finder for LostUpdate {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        match step {
            ClientStep::Request(request) => self.request(request, scene),
            ClientStep::SetData { path, is_checked } => {
                let read = mem::take(self.uses.of(&scene.use_key(path)));
                if !is_checked && read.number > 0 {
                    self.overwrite(path, read, scene);
                }
            }
            ClientStep::Create(path, CreateMode::EphemeralSequential) => {
                let lock = parent_of(path);
                self.locks.enqueue(scene.at.session, lock, path);
            }
            ClientStep::Delete { path, .. } | ClientStep::Removed(path) => self.locks.leave(path),
            _ => {}
        }
    }

    fn forget_tree(&mut self) {
        self.paths.clear();
        self.uses.clear();
        for session in mem::take(&mut self.locks).sessions() {
            *self.may_hold.of(&session.to_string()) = true;
        }
    }
}

impl LostUpdate {
    fn request(&mut self, request: &Request<'_>, scene: &Scene<'_>) {
        let session = scene.client;
        if session.requests == 1 {
            let may_hold = session.opened == 0 && scene.facts.first > 1;
            *self.may_hold.of(&scene.at.session.to_string()) = may_hold;
        }
        if request.op == Some(OpCode::GetData) && request.error.is_none() {
            *self.uses.of(&scene.use_key(request.path)) = LastRead {
                number: scene.at.number,
                locks: self.locks.of(scene.at.session),
            };
        }
    }

    /// A write without a version after a read.
    fn overwrite(&mut self, path: &str, read: LastRead, scene: &mut Scene<'_>) {
        let session = scene.at.session;
        let facts = scene.facts.path(path);
        if facts.owner == Some(session) || scene.facts.using(session, path).is_outdated() {
            return;
        }
        let is_changed = facts.changed > read.number;
        if let (true, Some(writer)) = (is_changed, facts.changed_by.filter(|it| *it != session)) {
            let text = format!(
                "session {session} read {path}, session {writer} wrote it, and {session} overwrote that without a version"
            );
            return scene.report(path, HARM, 1, &[read.number, facts.changed], text);
        }
        // The locks that it held since the read.
        let held = self.locks.of(session);
        let since_read = read.locks.into_iter().filter(|lock| held.contains(lock));
        let mut common: Vec<_> = since_read.map(|(lock, _)| lock).collect();
        // What it took before is not known.
        if common.is_empty() && mem::take(self.may_hold.of(&session.to_string())) {
            return;
        }
        // A lock that all of them hold excludes the others.
        let rewrites = self.paths.of(path);
        if let Some(known) = &rewrites.under {
            common.retain(|lock| known.contains(lock));
        }
        let is_excluded = !common.is_empty();
        rewrites.under = Some(common);
        let other = rewrites.by.replace(session).filter(|it| *it != session);
        if is_excluded {
            return;
        }
        let (weight, too) = match other {
            Some(other) => (PROVEN, format!("; session {other} does so too")),
            None => (HABIT, String::new()),
        };
        let text = format!("session {session} read {path} and wrote it without a version{too}");
        scene.report(path, weight, 1, &[read.number], text);
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, UUID_LOCK, found, repeated};

    #[test]
    fn lost_update_is_a_write_without_the_version_that_was_read() {
        let lost = "1 getData /a\n2 getData /a\n2 setData /a 1B v3\n1 setData /a 1B";
        assert_eq!(found(lost), ["lost-update"]);
        let both = "1 getData /a\n1 setData /a 1B\n2 getData /a\n2 setData /a 1B";
        assert_eq!(found(both), ["lost-update"]);
        assert_eq!(
            found("1 getData /a\n1 multi [setData /a, delete /b]\n2 getData /a\n2 setData /a"),
            ["lost-update"]
        );
        assert_eq!(
            found(&repeated(0..5, "1 getData /a\n1 setData /a 1B")),
            ["lost-update"]
        );
        for other in [
            "1 getData /a\n1 setData /a 1B",
            "1 getData /a\n2 setData /a 1B\n1 setData /a 1B v7",
            "1 getData /a\n2 setData /a 1B\n1 setData /a 1B v7 -> BADVERSION",
            "1 setData /a 1B\n2 setData /a 1B\n1 setData /a 1B",
            "1 create /a EPHEMERAL\n1 getData /a\n1 setData /a\n2 getData /a",
            "1 getData /a\n1 multi [check /a v3, setData /a]\n2 getData /a\n2 multi [check /a v3, setData /a]",
            "1 getData /a\n1 setData /b 1B\n2 getData /a\n2 setData /c 1B",
        ] {
            assert_eq!(found(other), NOTHING, "{other}");
        }
    }

    /// Sessions that read and write under a lock were told that they lose updates.
    #[test]
    fn no_update_is_lost_under_a_lock_that_excludes_the_others() {
        let lock = |name: &str| {
            format!(
                "# create /l/{name} EPHEMERAL_SEQUENTIAL -> OK /l/{name}000000000#
                 # getData /a\n# setData /a 1B\n# delete /l/{name}000000000#"
            )
        };
        let writer = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-__WRIT__";
        for name in [UUID_LOCK, writer] {
            assert_eq!(found(&repeated(1..9, &lock(name))), NOTHING, "{name}");
        }
        // The journal has other locks of the session, and those that wait.
        let waiting = repeated(
            1..5,
            &format!("# create /l/{UUID_LOCK} EPHEMERAL_SEQUENTIAL -> OK /l/{UUID_LOCK}000000000#"),
        ) + &repeated(
            1..5,
            &format!("# getData /a\n# setData /a 1B\n# delete /l/{UUID_LOCK}000000000#"),
        );
        assert_eq!(found(&waiting), NOTHING);
        // Whoever holds no lock, another one, one that admits others, or has let go of it in between, does lose updates.
        let unlocked = "8 getData /a\n8 setData /a 1B\n";
        let other = lock(UUID_LOCK).replace("/l/", "/m/").replace('#', "8");
        let reader = "0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-__READ__";
        let between = lock(UUID_LOCK)
            .replace("# setData /a 1B\n", "")
            .replace('#', "8")
            + "\n8 setData /a 1B\n";
        let mut too_late = lock(UUID_LOCK).replace('#', "8");
        too_late = format!(
            "8 getData /a\n{}",
            too_late.replacen("8 getData /a\n", "", 1)
        );
        for lossy in [
            repeated(1..5, &lock(UUID_LOCK)) + unlocked,
            repeated(1..5, &lock(UUID_LOCK)) + &other,
            repeated(1..5, &lock(UUID_LOCK)) + &between,
            repeated(1..5, &lock(UUID_LOCK)) + &too_late,
            repeated(1..5, &lock(reader)),
            // A second place in the queue is no lock.
            format!(
                "7 create /l/{UUID_LOCK} EPHEMERAL_SEQUENTIAL -> OK /l/{UUID_LOCK}0000000000\n"
            ) + &repeated(1..5, &lock(UUID_LOCK)),
        ] {
            assert!(found(&lossy).contains(&"lost-update"), "{lossy}");
        }
        // An update that is lost is one, with a lock or without.
        let lost = format!(
            "1 create /l/{UUID_LOCK} EPHEMERAL_SEQUENTIAL -> OK /l/{UUID_LOCK}0000000001
             1 getData /a\n2 setData /a 1B\n1 setData /a 1B"
        );
        assert_eq!(found(&lost), ["lost-update"]);
    }
}
