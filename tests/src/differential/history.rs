//! Steps, run on two servers side by side.
//!
//! One request is in flight at a time, over all connections. So the frames of a connection have
//! only one correct order, and every difference is a difference between the servers. Steps whose
//! effects have no order (a session ends, time passes) are enclosed by barriers, and the events
//! between the barriers are compared as a set.

use std::fmt;

use super::{
    known::KnownDifferences,
    server::Server,
    side::{Seen, Side},
};
use crate::scenario::{Action, Line};

/// The number of steps between two comparisons of all connections.
const BARRIER_EVERY: usize = 25;

/// Lines for one connection, mostly one, sent with one write.
#[derive(Clone, Debug)]
pub struct Step(pub(crate) Vec<Line>);

impl Step {
    /// Parses lines of a scenario, without expectations.
    ///
    /// # Errors
    /// The first line that does not parse.
    pub fn parse(lines: &[String]) -> Result<Self, String> {
        let lines: Result<Vec<_>, _> = lines.iter().map(|line| Line::parse(line)).collect();
        Ok(Self(lines?))
    }

    /// The lines as text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|line| line.text.as_str())
    }

    /// The connection of the step, if it has one.
    #[must_use]
    pub fn conn(&self) -> Option<&str> {
        match &self.0.first()?.action {
            Action::Connect { conn, .. }
            | Action::Disconnect(conn)
            | Action::Request { conn, .. }
            | Action::Expire(conn)
            | Action::Receive(conn) => Some(conn),
            Action::Advance(_) | Action::Mark(_) => None,
        }
    }

    /// The number of client requests in the step.
    fn operations(&self) -> u64 {
        let is_operation =
            |line: &&Line| matches!(line.action, Action::Request { .. } | Action::Connect { .. });
        self.0.iter().filter(is_operation).count() as u64
    }

    fn order(&self) -> Order {
        match self.0.first().map(|line| &line.action) {
            Some(Action::Expire(_) | Action::Advance(_)) => Order::Ends,
            Some(Action::Connect { .. } | Action::Disconnect(_)) => Order::Kept,
            Some(Action::Request { words, .. })
                if words.iter().any(|word| word.is("closeSession")) =>
            {
                Order::Open
            }
            _ => Order::Usual,
        }
    }
}

/// The order that the protocol promises for the frames a step causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// The frames of each connection are in order.
    Usual,
    /// The same, but a connection that ends may lose its last frames.
    Kept,
    /// Events come in any order.
    Open,
    /// The same, and connections may end before they receive their events.
    Ends,
}

/// The first difference between two servers.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The steps up to the one that showed the difference.
    pub steps: Vec<Step>,
    /// The connection.
    pub conn: String,
    /// What the first server sent, or nothing.
    pub left: String,
    /// What the second server sent, or nothing.
    pub right: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "connection {}:", self.conn)?;
        writeln!(f, "  left:  {}", self.left)?;
        write!(f, "  right: {}", self.right)
    }
}

/// The outcome of a history.
#[derive(Clone, Debug)]
pub struct Played {
    /// The number of client requests compared.
    pub operations: u64,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// Runs steps until the servers differ or `next` returns `None`. `next` gets the first server.
///
/// # Errors
/// When a server is broken.
pub fn play(
    servers: [&mut dyn Server; 2],
    known: KnownDifferences,
    mut next: impl FnMut(&Side<'_>) -> Option<Step>,
) -> Result<Played, String> {
    let [left, right] = servers;
    let mut pair = Pair {
        left: Side::new(left, known)?,
        right: Side::new(right, known)?,
        steps: Vec::new(),
    };
    let mut operations = 0;
    let mut difference = None;
    while difference.is_none()
        && let Some(step) = next(&pair.left)
    {
        operations += step.operations();
        difference = pair.step(step)?;
    }
    if difference.is_none() {
        difference = pair.barrier(Order::Usual);
    }
    let steps = pair.steps;
    Ok(Played {
        operations,
        difference: difference.map(|difference| Difference {
            steps,
            ..difference
        }),
    })
}

/// Runs these steps.
///
/// # Errors
/// When a server is broken.
pub fn replay(
    servers: [&mut dyn Server; 2],
    known: KnownDifferences,
    steps: &[Step],
) -> Result<Option<Difference>, String> {
    let mut steps = steps.iter().cloned();
    let played = play(servers, known, |_| steps.next())?;
    Ok(played.difference)
}

struct Pair<'s> {
    left: Side<'s>,
    right: Side<'s>,
    steps: Vec<Step>,
}

impl Pair<'_> {
    fn step(&mut self, step: Step) -> Result<Option<Difference>, String> {
        let order = step.order();
        if order != Order::Usual
            && let Some(difference) = self.barrier(Order::Usual)
        {
            return Ok(Some(difference));
        }
        let conn = step.conn().map(str::to_owned);
        let lines = step.0.clone();
        self.steps.push(step);
        let began = [self.left.begin(&lines)?, self.right.begin(&lines)?];
        if began == [false, false] {
            return Ok(None);
        }
        if began[0] {
            self.left.finish(&lines)?;
        }
        if began[1] {
            self.right.finish(&lines)?;
        }
        if order != Order::Usual || self.steps.len().is_multiple_of(BARRIER_EVERY) {
            return Ok(self.barrier(order));
        }
        Ok(conn.and_then(|conn| self.compare(&conn, order)))
    }

    /// Waits for all frames that the servers have sent, and compares them.
    fn barrier(&mut self, order: Order) -> Option<Difference> {
        // Frames before the barrier first: a connection may end with them.
        let mut names = self.left.names();
        for name in self.right.names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let sides = [&mut self.left, &mut self.right];
        let [left, right] = sides.map(|side| {
            let mut all: Vec<Vec<Seen>> = names.iter().map(|name| side.collect(name)).collect();
            side.barrier();
            for (seen, name) in all.iter_mut().zip(&names) {
                seen.extend(side.collect(name));
            }
            all
        });
        let pairs = left.into_iter().zip(right);
        names
            .iter()
            .zip(pairs)
            .find_map(|(name, (left, right))| differ(name, left, right, order))
    }

    fn compare(&mut self, name: &str, order: Order) -> Option<Difference> {
        let (left, right) = (self.left.collect(name), self.right.collect(name));
        differ(name, left, right, order)
    }
}

fn differ(name: &str, left: Vec<Seen>, right: Vec<Seen>, order: Order) -> Option<Difference> {
    let (left, right) = (arrange(left, order), arrange(right, order));
    let at = (0..left.len().max(right.len())).find(|&at| {
        left.get(at).map(|seen| &seen.canonical) != right.get(at).map(|seen| &seen.canonical)
    })?;
    let text = |seen: Option<&Seen>| match seen {
        None => "nothing".to_owned(),
        Some(Seen { got: Ok(sent), .. }) => format!("{sent:?}"),
        Some(Seen { got: Err(got), .. }) => format!("{got:?}"),
    };
    Some(Difference {
        steps: Vec::new(),
        conn: name.to_owned(),
        left: text(left.get(at)),
        right: text(right.get(at)),
    })
}

/// Brings frames into the order in which they are compared.
fn arrange(mut all: Vec<Seen>, order: Order) -> Vec<Seen> {
    let is_closed = |seen: &Seen| matches!(seen.got, Err(super::link::Got::Closed));
    if order == Order::Ends && all.iter().any(is_closed) {
        all.retain(is_closed);
    }
    if matches!(order, Order::Open | Order::Ends) {
        for run in all.chunk_by_mut(|a, b| a.is_event && b.is_event) {
            run.sort_by(|a, b| a.canonical.cmp(&b.canonical));
        }
    }
    all
}
