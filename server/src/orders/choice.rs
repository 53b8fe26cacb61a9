//! A choice: which client's request is served next.

use std::{fmt, str::FromStr, sync::Arc};

use minikeeper_engine::Footprint;

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

/// A point of a run at which no further request was coming, and what was picked there.
#[derive(Clone, Debug)]
pub(crate) struct ChoicePoint {
    /// At most one of each client.
    pub(crate) choices: Vec<Choice>,
    /// The index of the one that was served.
    pub(crate) picked: usize,
}

impl ChoicePoint {
    pub(crate) fn picked(&self) -> &Choice {
        &self.choices[self.picked]
    }
}

/// The clients of a run in the order in which their requests are served.
///
/// As text, clients count from 1, and `x` stands before how often one comes in a row: `order:1x3.2.1`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct RequestOrder(pub(crate) Vec<u8>);

impl RequestOrder {
    const PREFIX: &'static str = "order:";

    /// The longest order that is read from a text.
    const LENGTH_MAX: usize = 100_000;

    /// Returns the order of a run.
    pub(crate) fn of(steps: &[ChoicePoint]) -> Self {
        let client = |step: &ChoicePoint| u8::try_from(step.picked().client).unwrap_or(u8::MAX);
        Self(steps.iter().map(client).collect())
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
        for (place, row) in self.0.chunk_by(|one, other| one == other).enumerate() {
            let dot = if place == 0 { "" } else { "." };
            write!(f, "{dot}{}", row[0] + 1)?;
            if row.len() > 1 {
                write!(f, "x{}", row.len())?;
            }
        }
        Ok(())
    }
}

impl FromStr for RequestOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |part: &str| {
            format!(
                "order {text:?}: {part:?} is no client; expected order:CLIENT.CLIENT..., each counted from 1 to \
                 {CLIENTS_MAX}, xCOUNT behind one that comes several times in a row, as in order:1x3.2.1"
            )
        };
        let parts = text.strip_prefix(Self::PREFIX).ok_or_else(|| wrong(text))?;
        let mut clients = Vec::new();
        for part in parts.split('.').filter(|_| !parts.is_empty()) {
            let (client, count) = part.split_once('x').unwrap_or((part, "1"));
            let number = client.parse::<usize>().ok();
            let client = number.filter(|number| (1..=CLIENTS_MAX).contains(number));
            let client = client.and_then(|client| u8::try_from(client - 1).ok());
            let count = count.parse::<usize>().ok().filter(|count| *count > 0);
            let (Some(client), Some(count)) = (client, count) else {
                return Err(wrong(part));
            };
            if clients.len() + count > Self::LENGTH_MAX {
                return Err(format!(
                    "order {:.40}...: longer than the limit of {} requests",
                    text,
                    Self::LENGTH_MAX
                ));
            }
            clients.extend(std::iter::repeat_n(client, count));
        }
        Ok(Self(clients))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_read_as_it_is_written() {
        for text in ["order:", "order:1", "order:1x3.2.1", "order:64x2.1"] {
            assert_eq!(text.parse::<RequestOrder>().unwrap().to_string(), text);
        }
        assert_eq!("order:2x2.1".parse::<RequestOrder>().unwrap().0, [1, 1, 0]);
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
        let error = "order:1x100001".parse::<RequestOrder>().unwrap_err();
        assert!(error.contains("longer than the limit"), "{error}");
    }
}
