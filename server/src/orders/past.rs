//! What a run has done so far, up to the order of requests that commute.
//!
//! Two orders are equivalent if one becomes the other by swapping neighbours of different clients that
//! commute. Equivalent orders have the same events with the same pasts: the past of an event is what must
//! come before it, through its client or through requests with which it does not commute. Source:
//! Mazurkiewicz, "Trace theory", 1987; the hash of pasts as the identity of a state: Musuvathi, Qadeer,
//! "Partial-order reduction for context-bounded state exploration", 2007.

use minikeeper_engine::{Footprint, Footprints};

use crate::orders::choice::{Choice, Mark};

/// How many requests of each client an event has in its past, itself included.
type Clock = Vec<u32>;

/// The requests that were served so far, and what else happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// The clock of each event.
    clocks: Vec<Clock>,
    touched: Footprints,
    /// The last event of each client.
    last: Vec<Option<usize>>,
    class: u64,
}

impl Past {
    /// Returns what is equal for equivalent orders, and hardly ever for others.
    pub(crate) const fn class(&self) -> u64 {
        self.class
    }

    /// Returns the class once this request is served, too.
    pub(crate) fn class_with(&self, choice: &Choice) -> u64 {
        let clock = self.clock_of(choice.client, &choice.footprint);
        self.class.wrapping_add(hash(choice.client, &clock))
    }

    pub(crate) fn add(&mut self, choice: &Choice) {
        let clock = self.clock_of(choice.client, &choice.footprint);
        self.class = self.class.wrapping_add(hash(choice.client, &clock));
        self.add_event(choice.client, clock, &choice.footprint);
    }

    /// Returns the class once this has happened with the last request, too.
    pub(crate) fn class_with_mark(&self, mark: Mark) -> u64 {
        let clock = self.clock_of_mark(mark);
        self.class.wrapping_add(hash_of_mark(mark, &clock))
    }

    pub(crate) fn add_mark(&mut self, mark: Mark) {
        let clock = self.clock_of_mark(mark);
        self.class = self.class.wrapping_add(hash_of_mark(mark, &clock));
        self.add_event(usize::from(mark.client), clock, &touched_by(mark));
    }

    fn add_event(&mut self, client: usize, clock: Clock, footprint: &Footprint) {
        let event = self.clocks.len();
        self.touched.add(client, event, footprint);
        self.clocks.push(clock);
        if self.last.len() <= client {
            self.last.resize(client + 1, None);
        }
        self.last[client] = Some(event);
    }

    fn clock_of(&self, client: usize, footprint: &Footprint) -> Clock {
        let mut clock = Clock::new();
        if let Some(last) = self.last.get(client).copied().flatten() {
            join(&mut clock, &self.clocks[last]);
        }
        self.touched.each_clash(footprint, |of, event| {
            // What is in the past has its past there.
            let own = self.clocks[event][of];
            if clock.get(of).is_none_or(|known| *known < own) {
                join(&mut clock, &self.clocks[event]);
            }
        });
        if clock.len() <= client {
            clock.resize(client + 1, 0);
        }
        clock[client] += 1;
        clock
    }

    /// What happens with a request comes behind it.
    fn clock_of_mark(&self, mark: Mark) -> Clock {
        let client = usize::from(mark.client);
        let mut clock = self.clock_of(client, &touched_by(mark));
        if let Some(cause) = self.clocks.last() {
            join(&mut clock, cause);
        }
        clock
    }
}

/// A late event is nobody else's business. What follows a fault depends on everything.
fn touched_by(mark: Mark) -> Footprint {
    match mark.fault.is_late_event() {
        true => Footprint::default(),
        false => Footprint::everything(),
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (here, there) in clock.iter_mut().zip(other) {
        *here = (*here).max(*there);
    }
}

/// Mixes an event to a number; those of several events are added.
fn hash(client: usize, clock: &[u32]) -> u64 {
    let mut hash = mixed(client as u64 + 1);
    let length = clock.iter().rposition(|count| *count > 0);
    for count in &clock[..length.map_or(0, |last| last + 1)] {
        hash = mixed(hash ^ u64::from(*count));
    }
    hash
}

fn hash_of_mark(mark: Mark, clock: &[u32]) -> u64 {
    mixed(hash(usize::from(mark.client), clock) ^ (mark.fault as u64 + 1))
}

/// The step of SplitMix64.
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
