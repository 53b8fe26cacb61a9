//! Finds deadlocks: cycles of sessions that wait for each other over several locks.
//!
//! The nodes of the graph are places in queues and locks. A place that waits has an edge to the place directly ahead of
//! it and to the lock; a lock has edges to the places that hold it; a place that holds a lock has edges to those places
//! of its session that wait, and were taken later. A place taken earlier belongs to another task of the client, such as
//! a leader selector in the background: otherwise that task could not have taken the one that holds. So N waiters
//! behind M holders are N + M edges. Every step takes time linear in nodes and edges, sorting apart.

use std::collections::BTreeMap;

use minikeeper_core::order;
use minikeeper_protocol::SessionId;

/// Who holds one lock, and who waits for it. A session that holds the lock or waits for it in
/// another place further ahead does not count as waiting: its process uses the lock in several
/// threads or tasks, and the lock alone then makes no cycle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Queue {
    pub(super) holders: Vec<Holder>,
    /// Whether one release is enough, as with leases; otherwise all holders have to release.
    pub(super) is_one_enough: bool,
    /// In queue order.
    pub(super) waiters: Vec<Waiter>,
}

/// A contender that holds a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Holder {
    /// `None` is a znode without a session, which never goes away.
    pub(super) session: Option<SessionId>,
    /// The zxid at which it took its place in the queue.
    pub(super) since: i64,
}

/// A contender that waits for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiter {
    pub(super) session: SessionId,
    /// The zxid at which it took its place in the queue.
    pub(super) since: i64,
    /// The number by which the caller knows the contender.
    pub(super) contender: usize,
    /// The owner of the znode ahead of it, if it is not a holder's. `Some(None)` is a znode without
    /// a session.
    pub(super) ahead: Option<Option<SessionId>>,
    /// Whether it waits for the holders too, directly or behind others.
    pub(super) awaits_holders: bool,
}

/// One step of a cycle: a session waits for the session of the next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) session: SessionId,
    /// The position of the lock it waits for in the list of queues.
    pub(super) queue: usize,
    pub(super) contender: usize,
    /// Whether the session of the next step holds the lock; otherwise it is ahead in the queue.
    pub(super) is_held: bool,
}

/// A set of sessions none of which can go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cycle {
    /// A cycle among the sessions.
    pub(super) steps: Vec<Step>,
    /// All of them, by id.
    pub(super) sessions: Vec<SessionId>,
}

/// A node that is a place or a list of places of a session.
#[derive(Clone, Copy, Debug)]
struct QueuePlace {
    session: SessionId,
    queue: usize,
    /// The number of the contender, if it waits.
    waits_as: Option<usize>,
}

/// The graph: first the locks, then the places.
#[derive(Debug)]
struct Graph {
    locks: usize,
    places: Vec<QueuePlace>,
    edges: Vec<Vec<usize>>,
    /// The number of edges that have to lead to live nodes for the node to be live.
    needed: Vec<usize>,
}

/// Finds the deadlocks, ordered by the smallest session id in each.
pub(super) fn find(queues: &[Queue]) -> Vec<Cycle> {
    let graph = Graph::new(queues);
    let is_live = graph.live();
    let mut cycles = Vec::new();
    for component in graph.components(&is_live) {
        let waits = |node: &&usize| graph.waiting(**node).is_some();
        let mut waiting: Vec<_> = component.iter().filter(waits).copied().collect();
        let session_of = |node: usize| graph.places[node - graph.locks].session;
        order::sort_by_key(&mut waiting, |node| (session_of(*node), *node));
        let mut sessions: Vec<_> = waiting.iter().map(|node| session_of(*node)).collect();
        sessions.dedup();
        if sessions.len() < 2 {
            continue;
        }
        let holders = component.iter().filter(|node| **node >= graph.locks);
        let holders = holders.filter(|node| graph.waiting(**node).is_none());
        let mut holding: BTreeMap<SessionId, ()> = BTreeMap::new();
        holding.extend(holders.map(|node| (session_of(*node), ())));
        let is_holder = |node: &usize| holding.contains_key(&session_of(*node));
        let start = waiting.iter().copied().find(is_holder);
        cycles.push(Cycle {
            steps: graph.cycle_from(start.unwrap_or(waiting[0]), &is_live),
            sessions,
        });
    }
    order::sort_by_key(&mut cycles, |cycle| cycle.sessions[0]);
    cycles
}

impl Graph {
    fn new(queues: &[Queue]) -> Self {
        let mut graph = Self {
            locks: queues.len(),
            places: Vec::new(),
            edges: vec![Vec::new(); queues.len()],
            needed: vec![0; queues.len()],
        };
        // The places of each session that wait: when they were taken, and their nodes.
        let mut waiting: BTreeMap<SessionId, Vec<(i64, usize)>> = BTreeMap::new();
        let mut holding: Vec<(SessionId, i64, usize)> = Vec::new();
        for (queue, content) in queues.iter().enumerate() {
            graph.add(queue, content, &mut waiting, &mut holding);
        }
        // For each of these places a node that needs it and all later ones of its session.
        for (session, places) in &mut waiting {
            order::sort_by_key(places, |place| *place);
            let mut later = None;
            for (_, place) in places.iter_mut().rev() {
                let node = graph.place(*session, 0, None);
                graph.link(node, *place);
                if let Some(later) = later {
                    graph.link(node, later);
                }
                later = Some(node);
                *place = node;
            }
        }
        for (session, since, node) in holding {
            let Some(places) = waiting.get(&session) else {
                continue;
            };
            let first_later = places.partition_point(|(taken, _)| *taken <= since);
            if let Some((_, later)) = places.get(first_later) {
                graph.link(node, *later);
            }
        }
        graph
    }

    fn add(
        &mut self,
        lock: usize,
        content: &Queue,
        waiting: &mut BTreeMap<SessionId, Vec<(i64, usize)>>,
        holding: &mut Vec<(SessionId, i64, usize)>,
    ) {
        // One place in a queue for each session: the first one.
        let mut nodes: BTreeMap<SessionId, usize> = BTreeMap::new();
        let mut holders = content.holders.clone();
        order::sort_by_key(&mut holders, |holder| (holder.session, holder.since));
        holders.dedup_by_key(|holder| holder.session);
        for holder in &holders {
            match holder.session {
                Some(session) => {
                    let node = self.place(session, lock, None);
                    nodes.insert(session, node);
                    holding.push((session, holder.since, node));
                    self.link(lock, node);
                }
                // What waits for a znode without a session waits for ever.
                None => self.needed[lock] += 1,
            }
        }
        if content.is_one_enough {
            self.needed[lock] = self.needed[lock].min(1);
        }
        for waiter in &content.waiters {
            if nodes.contains_key(&waiter.session) {
                continue;
            }
            let from = self.place(waiter.session, lock, Some(waiter.contender));
            match waiter.ahead {
                Some(None) => self.needed[from] += 1,
                Some(Some(session)) => {
                    if let Some(ahead) = nodes.get(&session) {
                        self.link(from, *ahead);
                    }
                }
                None => {}
            }
            nodes.insert(waiter.session, from);
            if waiter.awaits_holders && !holders.is_empty() {
                self.link(from, lock);
            }
            let places = waiting.entry(waiter.session).or_default();
            places.push((waiter.since, from));
        }
    }

    /// Adds a node, which is live unless edges are added.
    fn place(&mut self, session: SessionId, queue: usize, waits_as: Option<usize>) -> usize {
        self.places.push(QueuePlace {
            session,
            queue,
            waits_as,
        });
        self.edges.push(Vec::new());
        self.needed.push(0);
        self.edges.len() - 1
    }

    fn link(&mut self, from: usize, to: usize) {
        self.needed[from] += 1;
        self.edges[from].push(to);
    }

    /// Returns the place that a node is, if it waits.
    fn waiting(&self, node: usize) -> Option<(QueuePlace, usize)> {
        let place = *self.places.get(node.checked_sub(self.locks)?)?;
        Some((place, place.waits_as?))
    }

    /// Returns which nodes can go on: they wait for nothing, or for what can go on.
    fn live(&self) -> Vec<bool> {
        let mut awaited_by = vec![Vec::new(); self.edges.len()];
        for (from, edges) in self.edges.iter().enumerate() {
            for to in edges {
                awaited_by[*to].push(from);
            }
        }
        let mut needed = self.needed.clone();
        let mut is_live: Vec<_> = needed.iter().map(|needed| *needed == 0).collect();
        let mut found: Vec<_> = (0..is_live.len()).filter(|node| is_live[*node]).collect();
        while let Some(node) = found.pop() {
            for from in &awaited_by[node] {
                needed[*from] = needed[*from].saturating_sub(1);
                if needed[*from] == 0 && !is_live[*from] {
                    is_live[*from] = true;
                    found.push(*from);
                }
            }
        }
        is_live
    }

    /// Returns the strongly connected components of the nodes that are not live: Tarjan's
    /// algorithm, with a stack of its own instead of recursion.
    fn components(&self, is_live: &[bool]) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let count = self.edges.len();
        let (mut index, mut low) = (vec![UNSEEN; count], vec![0; count]);
        let (mut open, mut is_open) = (Vec::new(), vec![false; count]);
        let mut components = Vec::new();
        let mut next_index = 0;
        for root in 0..count {
            if is_live[root] || index[root] != UNSEEN {
                continue;
            }
            // Each with the position of its next edge.
            let mut path = vec![(root, 0)];
            while let Some((node, at)) = path.last_mut() {
                let node = *node;
                if *at == 0 {
                    (index[node], low[node]) = (next_index, next_index);
                    next_index += 1;
                    open.push(node);
                    is_open[node] = true;
                }
                let edge = self.edges[node].get(*at).copied();
                *at += 1;
                match edge {
                    Some(to) if is_live[to] => {}
                    Some(to) if index[to] == UNSEEN => path.push((to, 0)),
                    Some(to) if is_open[to] => low[node] = low[node].min(index[to]),
                    Some(_) => {}
                    None => {
                        path.pop();
                        if let Some((above, _)) = path.last() {
                            low[*above] = low[*above].min(low[node]);
                        }
                        if low[node] == index[node] {
                            let from = open.iter().rposition(|open| *open == node).unwrap_or(0);
                            let component = open.split_off(from);
                            for node in &component {
                                is_open[*node] = false;
                            }
                            components.push(component);
                        }
                    }
                }
            }
        }
        components
    }

    /// Returns the shortest cycle through a place: a search in breadth.
    fn cycle_from(&self, start: usize, is_live: &[bool]) -> Vec<Step> {
        let mut reached_from: Vec<Option<usize>> = vec![None; self.edges.len()];
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for to in &self.edges[node] {
                if !is_live[*to] && reached_from[*to].is_none() {
                    reached_from[*to] = Some(node);
                    queue.push_back(*to);
                }
            }
            if reached_from[start].is_some() {
                break;
            }
        }
        let mut steps = Vec::new();
        let (mut node, mut is_held) = (start, false);
        while let Some(from) = reached_from[node] {
            is_held |= from < self.locks;
            if let Some((place, contender)) = self.waiting(from) {
                steps.push(Step {
                    session: place.session,
                    queue: place.queue,
                    contender,
                    is_held,
                });
                is_held = false;
            }
            node = from;
            if node == start {
                break;
            }
        }
        steps.reverse();
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(id: i64) -> Holder {
        Holder {
            session: Some(SessionId(id)),
            since: 0,
        }
    }

    /// A mutex: the first session holds it, the others wait in order. Sessions wait after they hold.
    fn mutex(sessions: &[i64]) -> Queue {
        let ids: Vec<_> = sessions.iter().map(|id| SessionId(*id)).collect();
        let waiter = |at: usize| Waiter {
            session: ids[at],
            since: 1,
            contender: at,
            ahead: (at > 1).then(|| Some(ids[at - 1])),
            awaits_holders: true,
        };
        Queue {
            holders: ids.first().map(|id| holder(id.0)).into_iter().collect(),
            is_one_enough: false,
            waiters: (1..ids.len()).map(waiter).collect(),
        }
    }

    /// A semaphore: some sessions have a lease, one waits for any of them.
    fn semaphore(holders: &[i64], waiter: i64) -> Queue {
        let mut queue = mutex(&[0, waiter]);
        queue.holders = holders.iter().map(|id| holder(*id)).collect();
        queue.is_one_enough = true;
        queue
    }

    fn sessions(cycle: &Cycle) -> Vec<i64> {
        cycle.sessions.iter().map(|id| id.0).collect()
    }

    fn steps(cycle: &Cycle) -> Vec<(i64, usize, bool)> {
        let step = |step: &Step| (step.session.0, step.queue, step.is_held);
        cycle.steps.iter().map(step).collect()
    }

    #[test]
    fn two_sessions_that_hold_what_the_other_wants_are_a_deadlock() {
        let found = find(&[mutex(&[1, 2]), mutex(&[2, 1])]);
        assert_eq!(found.len(), 1);
        assert_eq!(sessions(&found[0]), [1, 2]);
        assert_eq!(steps(&found[0]), [(1, 1, true), (2, 0, true)]);
    }

    #[test]
    fn cycle_goes_by_the_holders_though_others_are_in_the_queue() {
        // 2 waits between 1 and 3, and 4 behind them all.
        let found = find(&[mutex(&[1, 2, 3, 4]), mutex(&[3, 1])]);
        assert_eq!(found.len(), 1);
        assert_eq!(sessions(&found[0]), [1, 2, 3], "4 only waits behind them");
        assert_eq!(steps(&found[0]), [(1, 1, true), (3, 0, true)]);
    }

    #[test]
    fn cycle_by_places_in_queues_is_found() {
        // 1 is ahead of 2 in one queue, 2 ahead of 1 in the other; the holder of both waits for 3.
        let queues = [
            mutex(&[9, 1, 2]),
            mutex(&[8, 2, 1]),
            mutex(&[1, 9]),
            mutex(&[2, 8]),
        ];
        let found = find(&queues);
        assert_eq!(found.len(), 1);
        assert_eq!(sessions(&found[0]), [1, 2, 8, 9]);
        // Without that wait the holders go on, and then 1 and 2, which each wait in two tasks.
        assert_eq!(find(&queues[..2]), []);
    }

    /// A leader selector waits in a task of its own, from the start of its client on; what another task then locks
    /// does not wait for it. That was reported as a deadlock.
    #[test]
    fn place_taken_before_a_lock_does_not_block_its_holder() {
        let selector = mutex(&[1, 2]);
        let mut lock = mutex(&[2, 1]);
        lock.holders[0].since = 2;
        lock.waiters[0].since = 3;
        assert_eq!(find(&[selector.clone(), lock.clone()]), []);
        // Another task of 2 now waits for what 1 has: the two that were taken in this order block each other.
        let mut other = mutex(&[1, 2]);
        other.waiters[0].since = 4;
        let found = find(&[selector, lock, other]);
        assert_eq!(found.len(), 1);
        assert_eq!(steps(&found[0]), [(1, 1, true), (2, 2, true)]);
    }

    #[test]
    fn waiting_without_a_cycle_is_no_deadlock() {
        assert_eq!(find(&[]), []);
        assert_eq!(find(&[mutex(&[])]), []);
        assert_eq!(
            find(&[mutex(&[1, 2, 3]), mutex(&[4, 1]), mutex(&[5, 4])]),
            []
        );
    }

    #[test]
    fn session_with_several_places_in_one_queue_is_no_deadlock() {
        assert_eq!(find(&[mutex(&[1, 1])]), []);
        assert_eq!(find(&[mutex(&[1, 2, 1, 2, 3, 1])]), []);
        assert_eq!(find(&[mutex(&[3, 2, 1, 2])]), []);
    }

    #[test]
    fn one_free_lease_prevents_a_deadlock() {
        // 2 waits for a lease; 1, which has one, waits for 2.
        let held = mutex(&[2, 1]);
        assert_eq!(find(&[semaphore(&[1, 3], 2), held.clone()]), []);
        let found = find(&[semaphore(&[1, 3], 2), mutex(&[2, 1, 3])]);
        assert_eq!(sessions(&found[0]), [1, 2, 3]);
        assert_eq!(sessions(&find(&[semaphore(&[1], 2), held])[0]), [1, 2]);
    }

    #[test]
    fn znode_without_a_session_is_no_part_of_a_cycle() {
        let mut orphaned = mutex(&[1, 2]);
        orphaned.holders[0].session = None;
        assert_eq!(find(&[orphaned.clone()]), []);
        let found = find(&[orphaned, mutex(&[1, 2]), mutex(&[2, 1])]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn separate_deadlocks_are_reported_separately() {
        let found = find(&[
            mutex(&[5, 6]),
            mutex(&[6, 5]),
            mutex(&[1, 2]),
            mutex(&[2, 3]),
            mutex(&[3, 1]),
        ]);
        assert_eq!(
            found.iter().map(sessions).collect::<Vec<_>>(),
            [vec![1, 2, 3], vec![5, 6]]
        );
        assert_eq!(steps(&found[0]), [(1, 4, true), (3, 3, true), (2, 2, true)]);
    }

    /// A recursive search would overflow the stack, and a quadratic one would not end.
    #[test]
    fn ring_of_a_hundred_thousand_sessions_is_one_deadlock() {
        let count = 100_000;
        let queues: Vec<_> = (0..count)
            .map(|at| mutex(&[at, (at + 1) % count]))
            .collect();
        let found = find(&queues);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].steps.len(), 100_000);
    }

    #[test]
    fn random_queues_agree_with_a_plain_search() {
        // The numbers of a linear congruential generator.
        let mut state: u64 = 7;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            i64::try_from((state >> 33) % below).unwrap()
        };
        let mut deadlocks = 0;
        for _ in 0..2_000 {
            let queues: Vec<_> = (0..4)
                .map(|_| {
                    let mut sessions: Vec<_> = (0..3).map(|_| random(6)).collect();
                    sessions.sort_unstable();
                    sessions.dedup();
                    let at = usize::try_from(random(3)).unwrap() % sessions.len();
                    sessions.rotate_left(at);
                    sessions
                })
                .collect();
            let is_found = !find(&queues.iter().map(|q| mutex(q)).collect::<Vec<_>>()).is_empty();
            // The first of each queue goes on once its session waits nowhere, the others after the one ahead.
            let mut done = vec![0; queues.len()];
            loop {
                let before = done.clone();
                for (at, queue) in queues.iter().enumerate() {
                    let waits = |id: i64| {
                        let mut all = queues.iter().zip(&done);
                        all.any(|(queue, done)| {
                            let place = queue.iter().position(|it| *it == id);
                            place.is_some_and(|place| place > 0 && place >= *done)
                        })
                    };
                    if done[at] == 0 && !waits(queue[0]) {
                        // All that wait behind it get their turn.
                        done[at] = queue.len();
                    }
                }
                if done == before {
                    break;
                }
            }
            let is_cyclic = queues
                .iter()
                .zip(&done)
                .any(|(queue, done)| *done < queue.len());
            assert_eq!(is_found, is_cyclic, "{queues:?}");
            deadlocks += usize::from(is_found);
        }
        assert!(deadlocks > 100, "{deadlocks}");
    }
}
