//! Makes the choices of one run. Pure.

use minikeeper_core::faults::chance::Chance;

use crate::orders::{
    choice::{Mark, RequestOrder},
    fault::SweepFault,
};

/// How many requests of one client are served in a row while others wait: one that asks until something
/// has changed would go on for ever.
pub(crate) const ROW_MAX: usize = 100;

/// What a run is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// Serve these clients first, and then change between them as rarely as possible.
    Follow(RequestOrder),
    /// Serve the client with the highest priority. Priorities are random, and that of the client which was
    /// served becomes the lowest at `changes` random requests among the first `length`.
    ///
    /// An error that needs `changes + 1` constraints on the order is found with a chance of at least
    /// 1 / (clients * length ^ changes). Source: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized
    /// scheduler with probabilistic guarantees of finding bugs", 2010.
    Sample {
        seed: u64,
        changes: u32,
        length: usize,
        /// One of these acts at a random request among the first `length`; none for an empty list. If late
        /// events are one of them, each event is late with a chance of 1 / [`LATE_ONE_IN`].
        faults: Vec<SweepFault>,
    },
}

/// The chance of an event to be late in a random order.
const LATE_ONE_IN: usize = 8;

/// The client that was served last, and how often in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Streak {
    client: Option<usize>,
    length: usize,
}

impl Streak {
    /// Returns the client that goes on unless something forces a change.
    pub(crate) fn goes_on(self, clients: impl IntoIterator<Item = usize>) -> Option<usize> {
        let last = self.client.filter(|_| self.length < ROW_MAX)?;
        clients.into_iter().find(|client| *client == last)
    }

    pub(crate) fn served(&mut self, client: usize) {
        let is_same = self.client == Some(client);
        self.length = if is_same { self.length + 1 } else { 1 };
        self.client = Some(client);
    }
}

/// The order needs a client that has no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NotFollowed {
    pub(crate) client: usize,
}

/// Chooses among the clients that have a request, again and again.
#[derive(Debug)]
pub(crate) struct Chooser {
    goal: Goal,
    streak: Streak,
    made: usize,
    chance: Chance,
    /// By client.
    priorities: Vec<u64>,
    /// At which choices a priority changes.
    changes: Vec<usize>,
    /// What acts at which choice of a sample.
    fault: Option<(usize, SweepFault)>,
    has_late_events: bool,
}

impl Chooser {
    pub(crate) fn new(goal: Goal) -> Self {
        let (mut chance, mut at) = (Chance::new(0), Vec::new());
        let (mut fault, mut has_late_events) = (None, false);
        if let Goal::Sample {
            seed,
            changes,
            length,
            faults,
        } = &goal
        {
            chance = Chance::new(*seed);
            at.extend((0..*changes).map(|_| chance.below((*length).max(1))));
            has_late_events = faults.contains(&SweepFault::EventLate);
            let others = faults.iter().filter(|fault| !fault.is_late_event());
            let others: Vec<_> = others.copied().collect();
            if !others.is_empty() {
                let step = chance.below((*length).max(1));
                fault = Some((step, others[chance.below(others.len())]));
            }
        }
        Self {
            goal,
            streak: Streak::default(),
            made: 0,
            chance,
            priorities: Vec::new(),
            changes: at,
            fault,
            has_late_events,
        }
    }

    /// Returns the client that the order names next, whether it has a request or not.
    pub(crate) fn named(&self) -> Option<usize> {
        match &self.goal {
            Goal::Follow(order) => order.client(self.made),
            Goal::Sample { .. } => None,
        }
    }

    /// Returns the number of requests that the order names and that were not chosen.
    pub(crate) const fn missing(&self) -> usize {
        match &self.goal {
            Goal::Follow(order) => order.len().saturating_sub(self.made),
            Goal::Sample { .. } => 0,
        }
    }

    /// Chooses one of these clients, of which there is at least one. Returns its index.
    pub(crate) fn choose(&mut self, clients: &[usize]) -> Result<usize, NotFollowed> {
        let client = match self.named() {
            Some(client) => client,
            None => match self.goal {
                Goal::Follow(_) => {
                    self.streak
                        .goes_on(clients.iter().copied())
                        .unwrap_or_else(|| {
                            let others = clients.iter().copied();
                            let others =
                                others.filter(|client| Some(*client) != self.streak.client);
                            others.min().unwrap_or(clients[0])
                        })
                }
                Goal::Sample { .. } => self.first(clients),
            },
        };
        let index = clients.iter().position(|other| *other == client);
        let index = index.ok_or(NotFollowed { client })?;
        if let Goal::Sample { .. } = self.goal {
            let lowered = self.changes.iter().filter(|at| **at == self.made).count();
            let is_long = self.streak.client == Some(client) && self.streak.length + 1 >= ROW_MAX;
            if lowered > 0 || is_long {
                // Lower than every priority that is drawn, and than those lowered before.
                let lowest = self.priorities.iter().copied().min().unwrap_or(1);
                self.priorities[client] = lowest.saturating_sub(1);
            }
        }
        self.streak.served(client);
        self.made += 1;
        Ok(index)
    }

    /// Returns what else happens with the request that was just chosen, of `client`, which tells these others.
    pub(crate) fn marks(&mut self, client: u8, told: &[u8]) -> Vec<Mark> {
        let step = self.made.saturating_sub(1);
        if let Goal::Follow(order) = &self.goal {
            return order.marks_of(step).collect();
        }
        let fault = self.fault.filter(|(at, _)| *at == step);
        let fault = fault.map(|(_, fault)| Mark { fault, client });
        let mut marks: Vec<_> = fault.into_iter().collect();
        for other in told {
            if self.has_late_events && self.chance.below(LATE_ONE_IN) == 0 {
                marks.push(Mark::late(*other));
            }
        }
        marks
    }

    fn first(&mut self, clients: &[usize]) -> usize {
        let most = clients.iter().copied().max().unwrap_or(0);
        while self.priorities.len() <= most {
            // The lower half is for those that are lowered.
            let drawn = self.chance.below(usize::MAX >> 1) as u64;
            self.priorities.push((1 << 63) | drawn);
        }
        let chosen = clients.iter().copied();
        let chosen = chosen.max_by_key(|client| self.priorities[*client]);
        chosen.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(chooser: &mut Chooser, clients: &[usize]) -> usize {
        clients[chooser.choose(clients).expect("it can be followed")]
    }

    #[test]
    fn order_is_followed_and_then_clients_change_as_rarely_as_possible() {
        let mut chooser = Chooser::new(Goal::Follow("order:2.1".parse().unwrap()));
        assert_eq!(chooser.named(), Some(1));
        assert_eq!(choose(&mut chooser, &[0, 1]), 1);
        assert_eq!(choose(&mut chooser, &[0, 1]), 0);
        assert_eq!(choose(&mut chooser, &[1, 0]), 0);
        assert_eq!(choose(&mut chooser, &[2, 1]), 1);
    }

    #[test]
    fn client_that_has_no_request_cannot_be_served() {
        let mut chooser = Chooser::new(Goal::Follow("order:4".parse().unwrap()));
        assert_eq!(chooser.choose(&[0, 1]), Err(NotFollowed { client: 3 }));
    }

    #[test]
    fn order_says_what_else_happens() {
        let text = "order:1.2+reply-lost+event-late:1";
        let mut chooser = Chooser::new(Goal::Follow(text.parse().unwrap()));
        choose(&mut chooser, &[0, 1]);
        assert_eq!(chooser.marks(0, &[1]), []);
        choose(&mut chooser, &[0, 1]);
        let lost = Mark {
            fault: SweepFault::ReplyLost,
            client: 1,
        };
        assert_eq!(chooser.marks(1, &[0]), [lost, Mark::late(0)]);
        choose(&mut chooser, &[0, 1]);
        assert_eq!(chooser.marks(0, &[1]), []);
    }

    #[test]
    fn sample_has_one_fault_and_some_late_events() {
        let marks = |faults: &[SweepFault]| {
            let mut chooser = Chooser::new(Goal::Sample {
                seed: 7,
                changes: 0,
                length: 100,
                faults: faults.to_vec(),
            });
            let marks = (0..100).flat_map(|_| {
                choose(&mut chooser, &[0, 1]);
                chooser.marks(0, &[1])
            });
            marks.map(|mark| mark.fault).collect::<Vec<_>>()
        };
        assert_eq!(marks(&[]), []);
        assert_eq!(marks(&[SweepFault::RequestLost]), [SweepFault::RequestLost]);
        let late = marks(&[SweepFault::EventLate]).len();
        assert!((1..50).contains(&late), "{late}");
    }

    #[test]
    fn client_that_asks_for_ever_lets_others_go_on() {
        let mut chooser = Chooser::new(Goal::Follow(RequestOrder::default()));
        let served: Vec<_> = (0..ROW_MAX + 1)
            .map(|_| choose(&mut chooser, &[0, 1]))
            .collect();
        assert_eq!(served.iter().filter(|client| **client == 1).count(), 1);
        let mut chooser = Chooser::new(Goal::Sample {
            seed: 1,
            changes: 0,
            length: 10,
            faults: Vec::new(),
        });
        let served: Vec<_> = (0..2 * ROW_MAX)
            .map(|_| choose(&mut chooser, &[0, 1]))
            .collect();
        assert!(served.contains(&0) && served.contains(&1));
    }

    #[test]
    fn seed_decides_a_sample() {
        let served = |seed| {
            let mut chooser = Chooser::new(Goal::Sample {
                seed,
                changes: 2,
                length: 10,
                faults: Vec::new(),
            });
            let served = (0..10).map(|_| choose(&mut chooser, &[0, 1, 2]));
            served.collect::<Vec<_>>()
        };
        assert_eq!(served(5), served(5));
        let different: std::collections::BTreeSet<_> = (0..50).map(served).collect();
        assert!(different.len() > 10, "{}", different.len());
    }
}
