//! Finds deadlocks: cycles of sessions that wait for each other over several locks.
//!
//! The nodes of the graph are sessions and locks. A waiting session has an edge to the session
//! directly ahead of it and to the lock; a lock has edges to the sessions that hold it. So N waiters
//! behind M holders are N + M edges. Every step takes time linear in nodes and edges.

use std::collections::BTreeMap;

use minikeeper_protocol::SessionId;

use crate::order;

/// Who holds one lock, and who waits for it. A session that holds the lock or waits for it in
/// another place further ahead does not count as waiting: its process uses the lock in several
/// threads or tasks, and the lock alone then makes no cycle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Queue {
    /// The sessions that hold it. `None` is a znode without a session, which never goes away.
    pub(super) holders: Vec<Option<SessionId>>,
    /// Whether one release is enough, as with leases; otherwise all holders have to release.
    pub(super) is_one_enough: bool,
    /// In queue order.
    pub(super) waiters: Vec<Waiter>,
}

/// A contender that waits for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiter {
    pub(super) session: SessionId,
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

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: usize,
    /// The lock and the contender of a waiting session.
    queue: usize,
    contender: usize,
}

/// The graph: first the sessions by id, then the locks.
#[derive(Debug)]
struct Graph {
    sessions: Vec<SessionId>,
    edges: Vec<Vec<Edge>>,
    /// The number of edges that have to lead to live nodes for the node to be live.
    needed: Vec<usize>,
}

/// Finds the deadlocks, ordered by the smallest session id in each.
pub(super) fn find(queues: &[Queue]) -> Vec<Cycle> {
    let graph = Graph::new(queues);
    let is_live = graph.live();
    let holders: Vec<_> = queues.iter().flat_map(|queue| &queue.holders).collect();
    let mut holds = vec![false; graph.sessions.len()];
    for session in holders.into_iter().flatten() {
        if let Ok(at) = graph.sessions.binary_search(session) {
            holds[at] = true;
        }
    }
    let mut cycles = Vec::new();
    for mut component in graph.components(&is_live) {
        component.retain(|node| *node < graph.sessions.len());
        order::sort_by_key(&mut component, |node| *node);
        if component.len() < 2 {
            continue;
        }
        let holder = component.iter().copied().find(|node| holds[*node]);
        cycles.push(Cycle {
            steps: graph.cycle_from(holder.unwrap_or(component[0]), &is_live),
            sessions: component.iter().map(|node| graph.sessions[*node]).collect(),
        });
    }
    order::sort_by_key(&mut cycles, |cycle| cycle.sessions[0]);
    cycles
}

impl Graph {
    fn new(queues: &[Queue]) -> Self {
        let mut sessions: Vec<_> = queues
            .iter()
            .flat_map(|queue| {
                let waiting = queue.waiters.iter();
                let waiting =
                    waiting.flat_map(|waiter| [Some(waiter.session), waiter.ahead.flatten()]);
                queue.holders.iter().copied().chain(waiting).flatten()
            })
            .collect();
        order::sort_by_key(&mut sessions, |session| *session);
        sessions.dedup();
        let count = sessions.len() + queues.len();
        let mut graph = Self {
            edges: vec![Vec::new(); count],
            needed: vec![0; count],
            sessions,
        };
        for (queue, content) in queues.iter().enumerate() {
            graph.add(queue, content);
        }
        graph
    }

    fn add(&mut self, queue: usize, content: &Queue) {
        let lock = self.sessions.len() + queue;
        let mut holders = content.holders.clone();
        order::sort_by_key(&mut holders, |holder| *holder);
        holders.dedup();
        for holder in &holders {
            self.link(lock, *holder, queue, 0);
        }
        if content.is_one_enough {
            self.needed[lock] = self.needed[lock].min(1);
        }
        // One place in a queue for each session: the first one.
        let mut seen: BTreeMap<SessionId, ()> = BTreeMap::new();
        seen.extend(holders.iter().flatten().map(|holder| (*holder, ())));
        for waiter in &content.waiters {
            if seen.insert(waiter.session, ()).is_some() {
                continue;
            }
            let from = self.node(waiter.session);
            if let Some(ahead) = waiter.ahead {
                self.link(from, ahead, queue, waiter.contender);
            }
            if waiter.awaits_holders && !holders.is_empty() {
                self.needed[from] += 1;
                self.edges[from].push(Edge {
                    to: lock,
                    queue,
                    contender: waiter.contender,
                });
            }
        }
    }

    /// Adds an edge to a session. What waits for a znode without a session waits for ever.
    fn link(&mut self, from: usize, to: Option<SessionId>, queue: usize, contender: usize) {
        self.needed[from] += 1;
        if let Some(session) = to {
            let to = self.node(session);
            self.edges[from].push(Edge {
                to,
                queue,
                contender,
            });
        }
    }

    fn node(&self, session: SessionId) -> usize {
        let found = self.sessions.binary_search(&session);
        found.expect("every session of a queue is listed")
    }

    /// Returns which nodes can go on: they wait for nothing, or for what can go on.
    fn live(&self) -> Vec<bool> {
        let mut awaited_by = vec![Vec::new(); self.edges.len()];
        for (from, edges) in self.edges.iter().enumerate() {
            for edge in edges {
                awaited_by[edge.to].push(from);
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
                let edge = self.edges[node].get(*at);
                *at += 1;
                match edge.map(|edge| edge.to) {
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

    /// Returns the shortest cycle through a session: a search in breadth.
    fn cycle_from(&self, start: usize, is_live: &[bool]) -> Vec<Step> {
        let mut reached_by: Vec<Option<(usize, Edge)>> = vec![None; self.edges.len()];
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for edge in &self.edges[node] {
                if !is_live[edge.to] && reached_by[edge.to].is_none() {
                    reached_by[edge.to] = Some((node, *edge));
                    queue.push_back(edge.to);
                }
            }
            if reached_by[start].is_some() {
                break;
            }
        }
        let mut steps = Vec::new();
        let (mut node, mut is_held) = (start, false);
        while let Some((from, edge)) = reached_by[node] {
            match self.sessions.get(from) {
                None => is_held = true,
                Some(session) => {
                    steps.push(Step {
                        session: *session,
                        queue: edge.queue,
                        contender: edge.contender,
                        is_held,
                    });
                    is_held = false;
                }
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

    /// A mutex: the first session holds it, the others wait in order.
    fn mutex(sessions: &[i64]) -> Queue {
        let ids: Vec<_> = sessions.iter().map(|id| SessionId(*id)).collect();
        let waiter = |at: usize| Waiter {
            session: ids[at],
            contender: at,
            ahead: (at > 1).then(|| Some(ids[at - 1])),
            awaits_holders: true,
        };
        Queue {
            holders: ids.first().map(|id| Some(*id)).into_iter().collect(),
            is_one_enough: false,
            waiters: (1..ids.len()).map(waiter).collect(),
        }
    }

    /// A semaphore: some sessions have a lease, one waits for any of them.
    fn semaphore(holders: &[i64], waiter: i64) -> Queue {
        let mut queue = mutex(&[0, waiter]);
        queue.holders = holders.iter().map(|id| Some(SessionId(*id))).collect();
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
        let without_holders = find(&queues[..2]);
        assert_eq!(steps(&without_holders[0]), [(1, 1, false), (2, 0, false)]);
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
        orphaned.holders = vec![None];
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
            // Warshall's closure of "waits for the one directly ahead".
            let mut waits = [[false; 6]; 6];
            for pair in queues.iter().flat_map(|queue| queue.windows(2)) {
                let at = |id: i64| usize::try_from(id).unwrap();
                waits[at(pair[1])][at(pair[0])] = true;
            }
            for by in 0..6 {
                for from in 0..6 {
                    for to in 0..6 {
                        waits[from][to] |= waits[from][by] && waits[by][to];
                    }
                }
            }
            let is_cyclic = (0..6).any(|session| waits[session][session]);
            assert_eq!(is_found, is_cyclic, "{queues:?}");
            deadlocks += usize::from(is_found);
        }
        assert!(deadlocks > 100, "{deadlocks}");
    }
}
