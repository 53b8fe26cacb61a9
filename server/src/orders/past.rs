//! What a run has done so far, up to the order of requests that commute.
//!
//! Two orders are equivalent if one becomes the other by swapping neighbours of different clients that
//! commute. Equivalent orders have the same events with the same pasts: the past of an event is what must
//! come before it, through its client or through requests with which it does not commute. Source:
//! Mazurkiewicz, "Trace theory", 1987; the hash of pasts as the identity of a state: Musuvathi, Qadeer,
//! "Partial-order reduction for context-bounded state exploration", 2007.

use std::sync::Arc;

use minikeeper_engine::Footprint;

use crate::orders::choice::Choice;

/// How many requests of each client an event has in its past, itself included.
type Clock = Vec<u32>;

/// A request that was served.
#[derive(Clone, Debug)]
struct Event {
    client: usize,
    clock: Clock,
    footprint: Arc<Footprint>,
}

/// The requests that were served so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    events: Vec<Event>,
    class: u64,
}

impl Past {
    /// Returns what is equal for equivalent orders, and hardly ever for others.
    pub(crate) const fn class(&self) -> u64 {
        self.class
    }

    /// Returns the class once this request is served, too.
    pub(crate) fn class_with(&self, choice: &Choice) -> u64 {
        let clock = self.clock_of(choice);
        self.class.wrapping_add(hash(choice.client, &clock))
    }

    pub(crate) fn add(&mut self, choice: &Choice) {
        let clock = self.clock_of(choice);
        self.class = self.class.wrapping_add(hash(choice.client, &clock));
        self.events.push(Event {
            client: choice.client,
            clock,
            footprint: Arc::clone(&choice.footprint),
        });
    }

    /// Returns the index of the first of these events that does not commute with a request.
    pub(crate) fn first_clash(&self, from: usize, choice: &Choice) -> Option<usize> {
        let mut events = self.events.iter().enumerate().skip(from);
        let clash = events.find(|(_, event)| {
            event.client != choice.client && !event.footprint.commutes_with(&choice.footprint)
        });
        clash.map(|(index, _)| index)
    }

    fn clock_of(&self, choice: &Choice) -> Clock {
        let mut clock = Clock::new();
        for event in self.events.iter().rev() {
            let own = event.clock[event.client];
            if at(&clock, event.client) >= own {
                // What is in the past has its past there.
                continue;
            }
            if event.client == choice.client || !event.footprint.commutes_with(&choice.footprint) {
                if clock.len() < event.clock.len() {
                    clock.resize(event.clock.len(), 0);
                }
                for (here, there) in clock.iter_mut().zip(&event.clock) {
                    *here = (*here).max(*there);
                }
            }
        }
        if clock.len() <= choice.client {
            clock.resize(choice.client + 1, 0);
        }
        clock[choice.client] += 1;
        clock
    }
}

fn at(clock: &[u32], client: usize) -> u32 {
    clock.get(client).copied().unwrap_or(0)
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

/// The step of SplitMix64.
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
