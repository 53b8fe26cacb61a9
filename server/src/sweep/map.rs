//! The map of a sweep: what was tried at each request and event, and what was not.

use crate::{orders::fault::SweepFault, sweep::point::FaultPoint};

/// The maximum number of requests and events in a map; the points of further ones are only counted.
const ROWS_MAX: usize = 2_000;

/// What is known of a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PointState {
    Untried,
    /// An equivalent point is tried instead.
    Equivalent,
    /// A rule says not to try it.
    LeftOut,
    /// It passed in the sweep that this one resumes.
    PassedEarlier,
    Passed,
    /// It failed as a rule says.
    Allowed,
    Failed,
    /// It failed, and passed when it was repeated.
    Flaky,
    Hung,
    NotReached,
}

impl PointState {
    /// All of them.
    pub(crate) const ALL: [Self; 10] = [
        Self::Failed,
        Self::Hung,
        Self::Flaky,
        Self::Passed,
        Self::Allowed,
        Self::PassedEarlier,
        Self::NotReached,
        Self::Untried,
        Self::Equivalent,
        Self::LeftOut,
    ];

    /// Returns its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Untried => "untried",
            Self::Equivalent => "equivalent",
            Self::LeftOut => "left-out",
            Self::Allowed => "allowed",
            Self::PassedEarlier => "passed-earlier",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Flaky => "flaky",
            Self::Hung => "hung",
            Self::NotReached => "not-reached",
        }
    }
}

/// A request or an event, with its points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MapRow {
    /// The test, if several were swept.
    pub(crate) test: Option<String>,
    /// Its place in the model; `None` if the caller named it and no run without faults shows it.
    pub(crate) place: Option<usize>,
    pub(crate) client: u32,
    pub(crate) op: String,
    pub(crate) nth: u64,
    pub(crate) path: String,
    /// In which state of a lock the client is there; empty if it has to do with none.
    pub(crate) lock: &'static str,
    pub(crate) states: Vec<(SweepFault, PointState)>,
}

impl MapRow {
    fn is_of(&self, place: Option<usize>, point: &FaultPoint) -> bool {
        match place {
            Some(_) => self.place == place,
            None => {
                let own = (self.client, &self.op, self.nth, &self.path);
                own == (point.client, &point.op, point.nth, &point.path)
            }
        }
    }
}

/// The map of a sweep.
#[derive(Clone, Debug, Default)]
pub(crate) struct SweepMap {
    /// In the order of the first run.
    pub(crate) rows: Vec<MapRow>,
    /// The number of points beyond the last row.
    pub(crate) points_beyond: u64,
    /// The number of pairs of points, which have no row.
    pub(crate) pairs: u64,
    /// How many of them are known to be in a state.
    pub(crate) pair_states: Vec<(PointState, u64)>,
}

impl SweepMap {
    /// Adds a point behind those that were added. The points of one place follow each other.
    pub(crate) fn add(
        &mut self,
        (place, lock): (Option<usize>, &'static str),
        point: &FaultPoint,
        state: PointState,
    ) {
        if let Some(row) = self.rows.last_mut()
            && row.is_of(place, point)
        {
            row.states.push((point.fault, state));
        } else if self.rows.len() < ROWS_MAX {
            self.rows.push(MapRow {
                test: None,
                place,
                client: point.client,
                op: point.op.clone(),
                nth: point.nth,
                path: point.path.clone(),
                lock,
                states: vec![(point.fault, state)],
            });
        } else {
            self.points_beyond += 1;
        }
    }

    /// Notes what became of a point.
    pub(crate) fn set(&mut self, place: Option<usize>, point: &FaultPoint, state: PointState) {
        let mut rows = self.rows.iter_mut().filter(|row| row.is_of(place, point));
        let cell = rows.find_map(|row| {
            let mut states = row.states.iter_mut();
            states.find(|(fault, _)| *fault == point.fault)
        });
        if let Some((_, known)) = cell {
            *known = state;
        }
    }

    /// Adds the map of the sweep of a test to that of its suite.
    pub(crate) fn merge(&mut self, title: &str, other: Self) {
        self.points_beyond += other.points_beyond;
        self.pairs += other.pairs;
        for mut row in other.rows {
            if self.rows.len() < ROWS_MAX {
                row.test = Some(title.to_owned());
                self.rows.push(row);
            } else {
                self.points_beyond += row.states.len() as u64;
            }
        }
        for (state, count) in other.pair_states {
            match (self.pair_states.iter_mut()).find(|(known, _)| *known == state) {
                Some((_, known)) => *known += count,
                None => self.pair_states.push((state, count)),
            }
        }
    }

    /// Notes what became of a pair.
    pub(crate) fn add_pair(&mut self, state: PointState) {
        match (self.pair_states.iter_mut()).find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => self.pair_states.push((state, 1)),
        }
    }
}
