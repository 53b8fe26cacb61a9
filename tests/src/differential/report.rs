//! Writes a history as a scenario: the replies of a server become the expectations.

use super::{
    history::Step,
    known::KnownDifferences,
    link::Got as Received,
    server::Server,
    side::{Seen, Side},
};
use crate::{
    drive::Sent,
    scenario::{self, Action, MARK, expectation},
};

/// Runs steps on one server and writes its replies and events as a case of this title.
///
/// Waits for the reply of each request, and for all connections after each step, so that any
/// correct server meets the expectations in the order of the lines.
///
/// # Errors
/// When the server is broken.
pub fn scenario(
    server: &mut dyn Server,
    known: KnownDifferences,
    title: &str,
    steps: &[Step],
) -> Result<String, String> {
    let mut side = Side::new(server, known)?;
    let mut out = format!("case {title}\n");
    for step in steps {
        side.env.zxid = side.newest_zxid()?;
        let before = side.env.zxid;
        // The next reply shows how many changes the step made: zxids count from here.
        let is_time = matches!(
            step.0.first().map(|line| &line.action),
            Some(Action::Advance(_) | Action::Expire(_))
        );
        if !side.begin(&step.0)? {
            continue;
        }
        if is_time && !side.env.marks.contains_key(MARK) {
            side.env.marks.insert(MARK.to_owned(), before);
            out += &format!("mark {MARK}\n");
        }
        side.finish(&step.0)?;
        side.barrier();
        let acting = step.conn().map(str::to_owned);
        let mut names = side.names();
        // The acting connection first: its request must precede its frames.
        names.sort_by_key(|name| Some(name) != acting.as_ref());
        let mut frames: Vec<(String, Vec<Seen>)> = Vec::new();
        for name in names {
            let mut seen = side.collect(&name);
            side.barrier();
            seen.extend(side.collect(&name));
            frames.push((name, seen));
        }
        side.env.zxid = newest_before_last(&frames, step.0.len(), before);
        let is_answered = frames.iter().flat_map(|(_, seen)| seen).any(is_reply);
        out += &step_text(&side, step, acting.as_deref(), frames, known);
        if is_answered {
            side.env.marks.remove(MARK);
        }
    }
    Ok(out)
}

fn is_reply(seen: &Seen) -> bool {
    matches!(seen.got, Ok(Sent::Reply { .. }))
}

/// Returns the newest zxid before the last line of a step, from which its lines count.
fn newest_before_last(frames: &[(String, Vec<Seen>)], lines: usize, before: i64) -> i64 {
    let own = frames.first().map_or(&[][..], |(_, seen)| seen);
    let replies = own.iter().filter_map(|seen| match &seen.got {
        Ok(Sent::Reply { zxid, .. } | Sent::BrokenOff { zxid, .. }) => Some(zxid.0),
        _ => None,
    });
    replies.take(lines.saturating_sub(1)).fold(before, i64::max)
}

fn step_text(
    side: &Side<'_>,
    step: &Step,
    acting: Option<&str>,
    frames: Vec<(String, Vec<Seen>)>,
    known: KnownDifferences,
) -> String {
    let mut out = String::new();
    let words = |seen: &Seen| {
        let got = match &seen.got {
            Ok(sent) => scenario::Got::Sent(sent.clone()),
            Err(Received::Closed) => scenario::Got::Closed,
            Err(Received::Silence) => scenario::Got::Nothing,
            Err(Received::Message(message)) => return format!("# malformed: {message:?}"),
        };
        expectation(&got, &side.env, !known.events_without_zxid)
    };
    let mut frames = frames.into_iter().peekable();
    let is_own = |name: &str| Some(name) == acting;
    let own = frames
        .next_if(|(name, _)| is_own(name))
        .map(|(_, seen)| seen);
    let mut own = own.unwrap_or_default().into_iter().peekable();
    let receives = match step.0.first().map(|line| &line.action) {
        Some(Action::Connect { .. } | Action::Request { .. }) => step.0.len() == 1,
        _ => false,
    };
    for line in &step.0 {
        out += &line.text;
        // The first frame goes after the arrow if it is the reply.
        if receives && let Some(first) = own.next_if(|seen| !seen.is_event) {
            out += &format!(" -> {}", words(&first));
        }
        out.push('\n');
    }
    let rest = own.map(|seen| (acting.unwrap_or_default().to_owned(), vec![seen]));
    for (name, all) in rest.chain(frames) {
        for seen in all {
            out += &format!("{name} <- {}\n", words(&seen));
        }
    }
    out
}
