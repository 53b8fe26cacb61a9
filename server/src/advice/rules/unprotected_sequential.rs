//! A create whose znode the client does not find again if the reply is lost.

use minikeeper_protocol::SessionId;

use super::{AdviceRule, ClientStep, Finder, HARM, PROVEN, Scene, name_of};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "unprotected-sequential",
    title: "sequential ephemeral whose name does not tell who created it",
    why: "if the reply is lost, the client does not know the number, and the znode blocks the queue until its \
          session ends",
    remedy: "put a UUID into the name, and after a lost connection look for it among the children \
             (Curator: withProtection)",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct UnprotectedSequential {
    /// The request whose reply a fault loses, and its session.
    reply_lost: Option<(SessionId, u64)>,
}

impl Finder for UnprotectedSequential {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let (session, number) = (scene.at.session, scene.at.number);
        match step {
            ClientStep::Fault { loses_reply: true } => {
                self.reply_lost = Some((session, number.saturating_add(1)));
            }
            ClientStep::Request(it) if it.is_queue() && !tells_owner(name_of(it.path), session) => {
                let is_lost = !it.is_answered || self.reply_lost == Some((session, number));
                let (weight, lost) = match is_lost {
                    true => (HARM, ", and the reply was lost"),
                    false => (PROVEN, ""),
                };
                let path = it.path;
                let text =
                    format!("session {session} created {path} as EPHEMERAL_SEQUENTIAL{lost}");
                scene.report(path, weight, 1, &[], text);
            }
            _ => {}
        }
    }
}

/// Returns whether a name has a UUID, or the id of its session, so that the client finds its znode again.
fn tells_owner(name: &str, session: SessionId) -> bool {
    let hex = format!("{:x}", session.0);
    let id = session.0.to_string();
    let id_parts = name.split(|it: char| !it.is_ascii_hexdigit() && it != '-');
    let has_uuid = id_parts
        .into_iter()
        .any(|part| part.chars().filter(char::is_ascii_hexdigit).count() >= 32);
    has_uuid || name.contains(&hex) || name.contains(&id)
}

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, advice, found};

    #[test]
    fn unprotected_sequential_has_no_id_in_its_name() {
        let naive = "1 create /l/lock- EPHEMERAL_SEQUENTIAL -> OK /l/lock-0000000000";
        assert_eq!(found(naive), ["unprotected-sequential"]);
        for name in [
            "_c_0e6a1a3a-6c1e-4b0d-9f0a-2f6a3b1c9d10-lock-", // Curator
            "_c_0e6a1a3a6c1e4b0d9f0a2f6a3b1c9d10-lock-",     // go-zookeeper
            "0e6a1a3a6c1e4b0d9f0a2f6a3b1c9d10__lock__",      // kazoo
            "x-72057594037927937-",                          // ZooKeeper's WriteLock
        ] {
            let line = format!(
                "72057594037927937 create /l/{name} EPHEMERAL_SEQUENTIAL -> OK /l/{name}0000000000"
            );
            assert_eq!(found(&line), NOTHING, "{name}");
        }
        assert_eq!(
            found("1 create /l/lock- PERSISTENT_SEQUENTIAL -> OK /l/lock-0000000000"),
            NOTHING
        );
        assert_eq!(
            found("1 create /l/lock- EPHEMERAL_SEQUENTIAL -> NONODE"),
            NOTHING
        );
    }

    #[test]
    fn unprotected_sequential_names_the_lost_reply_first() {
        let text = "1 create /l/lock- EPHEMERAL_SEQUENTIAL -> OK /l/lock-0000000000
                    1 fault lose-reply
                    1 create /l/lock- EPHEMERAL_SEQUENTIAL -> OK /l/lock-0000000001";
        let advice = advice(text);
        let finding = &advice.findings[0];
        assert!(
            finding.text.ends_with("and the reply was lost"),
            "{}",
            finding.text
        );
        assert_eq!((finding.count, &finding.entries[..]), (2, &[3, 1][..]));
    }
}
