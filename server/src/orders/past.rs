//! What a run has done so far, up to the order of requests that commute.
//!
//! Two orders are equivalent if one becomes the other by swapping neighbours of different clients that
//! commute. Equivalent orders have the same events with the same pasts: the past of an event is what must
//! come before it, through its client or through requests with which it does not commute. Source:
//! Mazurkiewicz, "Trace theory", 1987; the hash of pasts as the identity of a state: Musuvathi, Qadeer,
//! "Partial-order reduction for context-bounded state exploration", 2007.

use std::sync::Arc;

use minikeeper_engine::{Footprint, Footprints};

use crate::orders::choice::{Choice, Mark};

/// How many requests of each client an event has in its past, itself included.
type Clock = Vec<u32>;

/// Other numbers for the clients, by client. Orders that become equal with them are equivalent if the clients are
/// alike.
pub(crate) type Numbers = Vec<usize>;

/// The most clients that are given other numbers: there are 24 ways to do so.
const ALIKE_MAX: usize = 4;

/// Returns all ways to number clients that are alike, or the usual one if there are more than [`ALIKE_MAX`].
pub(crate) fn numbers_of(alike: usize) -> Arc<[Numbers]> {
    let mut all = vec![Numbers::new()];
    for client in 0..if alike > ALIKE_MAX { 0 } else { alike } {
        let longer = all.iter().flat_map(|numbers| {
            (0..=client).map(|place| {
                let mut longer = numbers.clone();
                longer.insert(place, client);
                longer
            })
        });
        all = longer.collect();
    }
    all.into()
}

/// What is equal for equivalent orders, and hardly ever for others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Class {
    pub(crate) hash: u64,
    /// The client that was served last, by the numbers that the hash is for.
    pub(crate) last: usize,
}

/// The requests that were served so far, and what else happened.
#[derive(Debug)]
pub(crate) struct Past {
    /// The clock of each event.
    clocks: Vec<Clock>,
    touched: Footprints,
    /// The last event of each client.
    last: Vec<Option<usize>>,
    numbers: Arc<[Numbers]>,
    /// The hash of all events with each numbering.
    hashes: Vec<u64>,
}

impl Past {
    /// Nothing has happened yet. Orders that differ only in these numbers of the clients are equivalent.
    pub(crate) fn new(numbers: &Arc<[Numbers]>) -> Self {
        Self {
            clocks: Vec::new(),
            touched: Footprints::default(),
            last: Vec::new(),
            numbers: Arc::clone(numbers),
            hashes: vec![0; numbers.len()],
        }
    }

    /// Returns the hash of the class.
    pub(crate) fn class(&self) -> u64 {
        self.hashes.iter().copied().min().unwrap_or(0)
    }

    /// Returns the class once this request is served, too.
    pub(crate) fn class_with(&self, choice: &Choice) -> Class {
        let clock = self.clock_of(choice.client, &choice.footprint);
        self.class_after(choice.client, |numbers| {
            hash(choice.client, &clock, numbers)
        })
    }

    pub(crate) fn add(&mut self, choice: &Choice) {
        let clock = self.clock_of(choice.client, &choice.footprint);
        for (sum, numbers) in self.hashes.iter_mut().zip(&*self.numbers) {
            *sum = sum.wrapping_add(hash(choice.client, &clock, numbers));
        }
        self.add_event(choice.client, clock, &choice.footprint);
    }

    /// Returns the class once this has happened with the last request, which was of `last`.
    pub(crate) fn class_with_mark(&self, last: usize, mark: Mark) -> Class {
        let clock = self.clock_of_mark(mark);
        self.class_after(last, |numbers| hash_of_mark(mark, &clock, numbers))
    }

    pub(crate) fn add_mark(&mut self, mark: Mark) {
        let clock = self.clock_of_mark(mark);
        for (sum, numbers) in self.hashes.iter_mut().zip(&*self.numbers) {
            *sum = sum.wrapping_add(hash_of_mark(mark, &clock, numbers));
        }
        self.add_event(usize::from(mark.client), clock, &touched_by(mark));
    }

    /// Returns the class after a further event.
    fn class_after(&self, last: usize, event: impl Fn(&[usize]) -> u64) -> Class {
        let all = self.hashes.iter().zip(&*self.numbers);
        let all = all.map(|(sum, numbers)| Class {
            hash: sum.wrapping_add(event(numbers)),
            last: number(last, numbers),
        });
        all.min().expect("there is a numbering")
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
        if mark.fault.is_late_event() {
            let mut clock = self.clock_of(client, &Footprint::default());
            if let Some(cause) = self.clocks.last() {
                join(&mut clock, cause);
            }
            return clock;
        }
        // Everything is in its past.
        let mut clock = vec![0; client + 1];
        for last in self.last.iter().flatten() {
            join(&mut clock, &self.clocks[*last]);
        }
        clock[client] += 1;
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

/// Returns the number of a client in a numbering, which has those that are not alike as they are.
fn number(client: usize, numbers: &[usize]) -> usize {
    numbers.get(client).copied().unwrap_or(client)
}

/// Mixes an event to a number; those of several events are added.
fn hash(client: usize, clock: &[u32], numbers: &[usize]) -> u64 {
    let mut hash = mixed(number(client, numbers) as u64 + 1);
    // Added, because their order differs from numbering to numbering.
    for (of, count) in clock.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = u64::from(*count) << 32;
        hash = hash.wrapping_add(mixed(count | number(of, numbers) as u64));
    }
    mixed(hash)
}

fn hash_of_mark(mark: Mark, clock: &[u32], numbers: &[usize]) -> u64 {
    mixed(hash(usize::from(mark.client), clock, numbers) ^ (mark.fault as u64 + 1))
}

/// The step of SplitMix64.
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
