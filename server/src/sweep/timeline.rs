//! The part of a failed run's journal that its report shows.

use std::collections::BTreeMap;

use minikeeper_core::journal::entry::{JournalEntry, Occurrence};
use minikeeper_protocol::SessionId;
use serde_json::Value;

use crate::{sweep::acts, views};

/// The maximum length of the entries before the fault. Unit: bytes of JSON.
const BEFORE_BYTES_MAX: usize = 16 << 10;

/// The maximum length of the entries from the fault on, and of those at the end. Unit: bytes of JSON.
const AFTER_BYTES_MAX: usize = 32 << 10;

/// The run around its fault: the last entries before it, those from it on, and the last ones of the run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SweepTimeline {
    /// As the verb `journal` shows them.
    pub(crate) entries: Vec<Value>,
    /// The number of the entry that shows that the fault acted.
    pub(crate) fault: Option<u64>,
    /// The numbers of the clients.
    pub(crate) clients: BTreeMap<SessionId, u32>,
}

impl SweepTimeline {
    pub(crate) fn new(entries: &[JournalEntry], mut clients: BTreeMap<SessionId, u32>) -> Self {
        let acted = acts::fault_in(entries);
        let at = acted.unwrap_or(entries.len());
        let mut shown = within(entries[..at].iter().rev(), BEFORE_BYTES_MAX);
        shown.reverse();
        let after = &entries[at..];
        let first = within(after.iter(), AFTER_BYTES_MAX);
        let beyond = first.last().map_or(0, |(place, _)| place + 1);
        let mut last = within(after[beyond..].iter().rev(), AFTER_BYTES_MAX);
        last.reverse();
        let after_gap = last.first().map_or(0, |(place, _)| place + 1);
        let left_out = &after[beyond..after.len() - after_gap];
        let left_out: Vec<_> = left_out.iter().filter(is_shown).collect();
        shown.extend(first);
        if let [one, ..] = left_out[..] {
            let count = left_out.len() as u64;
            let gap =
                JournalEntry::new(one.number, one.at, one.wall, Occurrence::Omitted { count });
            shown.push((0, views::journal::entry(&gap)));
        }
        shown.extend(last);
        let entries_shown: Vec<_> = shown.into_iter().map(|(_, entry)| entry).collect();
        clients.retain(|session, _| {
            let session = session.to_string();
            entries_shown
                .iter()
                .any(|entry| entry["session"].as_str() == Some(&session))
        });
        Self {
            fault: acted.map(|acted| entries[acted].number),
            entries: entries_shown,
            clients,
        }
    }
}

/// Returns whether an entry is of interest in a report.
pub(crate) fn is_shown(entry: &&JournalEntry) -> bool {
    entry.op() != Some("ping") && !matches!(entry.what, Occurrence::Verb(_))
}

/// Returns the first of the entries that are of interest, each with its place among all, as far as they fit.
fn within<'a>(
    entries: impl Iterator<Item = &'a JournalEntry>,
    bytes_max: usize,
) -> Vec<(usize, Value)> {
    let mut bytes = 0;
    let mut found = Vec::new();
    for (place, entry) in entries.enumerate().filter(|(_, entry)| is_shown(entry)) {
        let entry = views::journal::entry(entry);
        bytes += entry.to_string().len();
        if bytes > bytes_max {
            break;
        }
        found.push((place, entry));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn entry(number: u64, what: Occurrence) -> JournalEntry {
        let at = Duration::from_millis(number);
        let mut entry = JournalEntry::new(number, at, UNIX_EPOCH, what);
        entry.connection = Some(1);
        entry.session = Some(SessionId(7));
        entry
    }

    fn numbers(timeline: &SweepTimeline) -> Vec<u64> {
        let numbers = timeline.entries.iter();
        numbers
            .map(|entry| entry["number"].as_u64().unwrap())
            .collect()
    }

    #[test]
    fn long_run_is_cut_before_the_fault_and_in_the_middle() {
        let clock = || Occurrence::Clock("x".repeat(100));
        let mut entries: Vec<_> = (1..=5_000).map(|number| entry(number, clock())).collect();
        entries[999].what = Occurrence::Fault {
            fault: 1,
            action: "cut".to_owned(),
            op: "create",
            path: None,
        };
        let clients = [(SessionId(7), 1), (SessionId(8), 2)].into();
        let timeline = SweepTimeline::new(&entries, clients);
        assert_eq!(timeline.fault, Some(1_000));
        assert_eq!(timeline.clients, [(SessionId(7), 1)].into());
        let numbers = numbers(&timeline);
        assert!(numbers.is_sorted() && numbers.last() == Some(&5_000));
        let gap = (timeline.entries.iter())
            .position(|entry| entry["kind"] == "omitted")
            .unwrap();
        let fault = numbers.iter().position(|number| *number == 1_000).unwrap();
        assert!(fault > 10 && gap > fault + 10 && numbers.len() > gap + 10);
        let left_out = timeline.entries[gap]["count"].as_u64().unwrap();
        assert_eq!(numbers[gap] + left_out, numbers[gap + 1]);
        let bytes: usize = (timeline.entries.iter())
            .map(|entry| entry.to_string().len())
            .sum();
        assert!(bytes < BEFORE_BYTES_MAX + 2 * AFTER_BYTES_MAX + 1_000);
    }

    #[test]
    fn short_run_is_whole_and_a_run_without_a_fault_has_its_end() {
        let clock = |number| entry(number, Occurrence::Clock("moved".to_owned()));
        let mut entries: Vec<_> = (1..=5).map(clock).collect();
        assert_eq!(
            numbers(&SweepTimeline::new(&entries, BTreeMap::new())),
            [1, 2, 3, 4, 5]
        );
        entries[2].what = Occurrence::Verb("inject".to_owned());
        let timeline = SweepTimeline::new(&entries, BTreeMap::new());
        assert_eq!(
            (numbers(&timeline), timeline.fault),
            (vec![1, 2, 4, 5], None)
        );
    }
}
