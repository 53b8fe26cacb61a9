//! A choice: which client's request is served next.

use std::{fmt, str::FromStr, sync::Arc};

use minikeeper_core::order::sort_by_key;
use minikeeper_engine::Footprint;

use crate::orders::fault::SweepFault;

/// The maximum number of clients of a run whose order is tried.
pub(crate) const CLIENTS_MAX: usize = 64;

/// A request that could be served next.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Its client, counted from 0.
    pub(crate) client: usize,
    /// Its operation by the name in the protocol.
    pub(crate) op: &'static str,
    /// Its path: the first, if there are several.
    pub(crate) path: Option<String>,
    /// What it would read and write. Empty if the order named another one.
    pub(crate) footprint: Arc<Footprint>,
}

/// What else happens when a request is served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Mark {
    pub(crate) fault: SweepFault,
    /// The client whose events are late; that of the request for another fault.
    pub(crate) client: u8,
}

impl Mark {
    /// The events of this client are late.
    pub(crate) const fn late(client: u8) -> Self {
        Self {
            fault: SweepFault::EventLate,
            client,
        }
    }
}

/// A point of a run at which no further request was coming, and what was picked there.
#[derive(Clone, Debug)]
pub(crate) struct ChoicePoint {
    /// At most one of each client.
    pub(crate) choices: Vec<Choice>,
    /// The index of the one that was served.
    pub(crate) picked: usize,
    /// The other clients that may have been sent an event.
    pub(crate) told: Vec<u8>,
    /// In ascending order.
    pub(crate) marks: Vec<Mark>,
}

impl ChoicePoint {
    pub(crate) fn picked(&self) -> &Choice {
        &self.choices[self.picked]
    }

    /// Returns whether the request was lost instead of served.
    pub(crate) fn is_lost(&self) -> bool {
        let mut marks = self.marks.iter();
        marks.any(|mark| mark.fault == SweepFault::RequestLost)
    }

    /// Returns the client of the request that was served, as orders have it.
    pub(crate) fn client(&self) -> u8 {
        u8::try_from(self.picked().client).unwrap_or(u8::MAX)
    }
}

/// The clients of a run in the order in which their requests are served.
///
/// As text, clients count from 1, and `x` stands before how often one comes in a row: `order:1x3.2.1`. Behind a
/// request stands what else happens: `order:1x3.2+reply-lost.1`, or `order:1x3.2+event-late:1` if the events
/// that it causes to client 1 come late.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct RequestOrder {
    clients: Vec<u8>,
    /// By step, in ascending order.
    marks: Vec<(usize, Mark)>,
}

impl RequestOrder {
    const PREFIX: &'static str = "order:";

    /// The longest order that is read from a text.
    const LENGTH_MAX: usize = 100_000;

    /// Returns the order of a run.
    pub(crate) fn of<'a>(steps: impl IntoIterator<Item = &'a ChoicePoint>) -> Self {
        let mut order = Self::default();
        for step in steps {
            order.push(step.client());
            step.marks.iter().for_each(|mark| order.mark(*mark));
        }
        order
    }

    /// Appends a request of a client.
    pub(crate) fn push(&mut self, client: u8) {
        self.clients.push(client);
    }

    /// Lets something else happen with the last request.
    pub(crate) fn mark(&mut self, mark: Mark) {
        self.marks
            .push((self.clients.len().saturating_sub(1), mark));
    }

    /// Returns the first so many requests.
    pub(crate) fn prefix(&self, length: usize) -> Self {
        let marks = self.marks.partition_point(|(step, _)| *step < length);
        Self {
            clients: self.clients[..length].to_vec(),
            marks: self.marks[..marks].to_vec(),
        }
    }

    /// Returns the client of a request; `None` if the order names none.
    pub(crate) fn client(&self, step: usize) -> Option<usize> {
        self.clients.get(step).map(|client| usize::from(*client))
    }

    /// Returns what else happens with a request.
    pub(crate) fn marks_of(&self, step: usize) -> impl Iterator<Item = Mark> {
        let first = self.marks.partition_point(|(at, _)| *at < step);
        let marks = self.marks[first..].iter();
        marks
            .take_while(move |(at, _)| *at == step)
            .map(|(_, mark)| *mark)
    }

    /// Returns what else happens, with the step of each.
    pub(crate) fn marks(&self) -> &[(usize, Mark)] {
        &self.marks
    }

    /// Returns the number of clients that it names, from the first to the last.
    pub(crate) fn count_clients(&self) -> usize {
        let last = self.clients.iter().max();
        last.map_or(0, |last| usize::from(*last) + 1)
    }

    /// Returns the memory that it takes, about.
    pub(crate) const fn bytes(&self) -> usize {
        self.clients.len() + self.marks.len() * size_of::<(usize, Mark)>()
    }

    pub(crate) const fn len(&self) -> usize {
        self.clients.len()
    }

    /// Returns whether a text is meant to be an order.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(Self::PREFIX)
    }
}

impl fmt::Display for RequestOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        let mut step = 0;
        while let Some(client) = self.clients.get(step) {
            let dot = if step == 0 { "" } else { "." };
            write!(f, "{dot}{}", client + 1)?;
            let has_marks = |step| self.marks_of(step).next().is_some();
            let row = self.clients[step..].iter().enumerate();
            let row = row.take_while(|(place, other)| *other == client && !has_marks(step + place));
            let row = row.count();
            if row > 1 {
                write!(f, "x{row}")?;
            }
            for mark in self.marks_of(step) {
                write!(f, "+{}", mark.fault.name())?;
                if mark.fault == SweepFault::EventLate {
                    write!(f, ":{}", mark.client + 1)?;
                }
            }
            step += row.max(1);
        }
        Ok(())
    }
}

impl FromStr for RequestOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let order_text = shown(text);
        let wrong = |part: &str| {
            let part = shown(part);
            format!(
                "order {order_text:?}: {part:?} is no client; expected order:CLIENT.CLIENT..., each counted from 1 to \
                 {CLIENTS_MAX}, xCOUNT behind one that comes several times in a row, as in order:1x3.2.1, and +FAULT \
                 behind one whose request meets a fault, as in order:1x3.2+reply-lost.1 or order:1x3.2+event-late:1"
            )
        };
        let client_of = |number: &str| {
            let number = number.parse::<usize>().ok();
            let number = number.filter(|number| (1..=CLIENTS_MAX).contains(number))?;
            u8::try_from(number - 1).ok()
        };
        let parts = text.strip_prefix(Self::PREFIX).ok_or_else(|| wrong(text))?;
        let mut order = Self::default();
        for part in parts.split('.').filter(|_| !parts.is_empty()) {
            let mut marks = part.split('+');
            let row = marks.next().unwrap_or_default();
            let (client, count) = row.split_once('x').unwrap_or((row, "1"));
            let count = count.parse::<usize>().ok().filter(|count| *count > 0);
            let (Some(client), Some(count)) = (client_of(client), count) else {
                return Err(wrong(part));
            };
            if count > Self::LENGTH_MAX - order.len() {
                return Err(format!(
                    "order {text:.40}...: longer than the limit of {} requests",
                    Self::LENGTH_MAX
                ));
            }
            order.clients.extend(std::iter::repeat_n(client, count));
            let mut marked = Vec::new();
            for name in marks {
                let (name, watcher) = match name.split_once(':') {
                    Some((name, watcher)) => (name, Some(watcher)),
                    None => (name, None),
                };
                let fault = SweepFault::named(name).ok_or_else(|| {
                    let names = SweepFault::NAMES.join(", ");
                    let name = shown(name);
                    format!("order {order_text:?}: {name:?} is no fault; one of {names}")
                })?;
                let watcher = watcher.map(client_of);
                let client = match (fault, watcher) {
                    (SweepFault::EventLate, Some(Some(watcher))) => watcher,
                    (SweepFault::EventLate, _) => {
                        return Err(format!(
                            "order {order_text:?}: {:?} does not name the watcher of the event; expected \
                             +event-late:CLIENT",
                            shown(part)
                        ));
                    }
                    (_, Some(_)) => {
                        return Err(format!(
                            "order {order_text:?}: {:?} names a client behind {}, which acts on the request",
                            shown(part),
                            fault.name()
                        ));
                    }
                    (_, None) => client,
                };
                marked.push(Mark { fault, client });
            }
            if marked.len() > Self::LENGTH_MAX - order.marks.len() {
                return Err(format!(
                    "order {text:.40}...: more faults than the limit of {}",
                    Self::LENGTH_MAX
                ));
            }
            sort_by_key(&mut marked, |mark| *mark);
            marked.into_iter().for_each(|mark| order.mark(mark));
        }
        Ok(order)
    }
}

/// Returns the beginning of a text, for an error.
fn shown(text: &str) -> &str {
    const CHARS_MAX: usize = 200;
    let end = text.char_indices().nth(CHARS_MAX);
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_read_as_it_is_written() {
        for text in [
            "order:",
            "order:1",
            "order:1x3.2.1",
            "order:64x2.1",
            "order:1.1+reply-lost.1x2.2+event-late:1.2",
            "order:1+session-expired+event-late:2+event-late:3",
        ] {
            assert_eq!(text.parse::<RequestOrder>().unwrap().to_string(), text);
        }
        let order = "order:2x2.1+event-late:2".parse::<RequestOrder>().unwrap();
        assert_eq!(order.clients, [1, 1, 0]);
        assert_eq!(order.marks_of(2).count(), 1);
        assert_eq!(order.prefix(2).to_string(), "order:2x2");
        assert_eq!(order.prefix(3), order);
    }

    #[test]
    fn wrong_orders_are_refused() {
        for text in [
            "1.2",
            "order:0",
            "order:65",
            "order:1x0",
            "order:1..2",
            "order:x",
            "order:1x-1",
        ] {
            let error = text.parse::<RequestOrder>().unwrap_err();
            assert!(error.contains("is no client"), "{text}: {error}");
        }
        let error = "order:1+late".parse::<RequestOrder>().unwrap_err();
        assert!(error.contains("is no fault; one of reply-lost"), "{error}");
        for (text, wrong) in [
            ("order:1+event-late", "does not name the watcher"),
            ("order:1+event-late:65", "does not name the watcher"),
            ("order:1+reply-lost:2", "names a client behind reply-lost"),
            ("order:1x100001", "longer than the limit"),
            ("order:1.1x18446744073709551615", "longer than the limit"),
        ] {
            let error = text.parse::<RequestOrder>().unwrap_err();
            assert!(error.contains(wrong), "{text}: {error}");
        }
        let long = format!("order:{}", "1.".repeat(10_000));
        for text in [format!("{long}?"), format!("{long}1+{long}")] {
            let error = text.parse::<RequestOrder>().unwrap_err();
            assert!(error.len() < 1_000, "{} bytes", error.len());
        }
        let many = format!("order:1{}", "+reply-lost".repeat(100_001));
        let error = many.parse::<RequestOrder>().unwrap_err();
        assert!(error.contains("more faults than the limit"), "{error}");
    }
}
