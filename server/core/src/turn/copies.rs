//! Reads the whole state without making clients wait, however large it is: under the engine lock in
//! pieces, with other turns in between.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use minikeeper_engine::{
    CopyStep, Engine, EngineCopy, Life, Listing, Room, SessionReport, WatchSummary,
};
use minikeeper_protocol::{SessionId, Zxid};
use parking_lot::MutexGuard;

use crate::{
    turn::{
        core::{Core, LockedState},
        turns::Turns,
    },
    work,
};

/// The maximum number of slots of the tree or of the watches that one hold of the lock reads.
const SLOTS_AT_ONCE: usize = 1_000;

/// About the maximum number of bytes that one hold of the lock copies.
const BYTES_AT_ONCE: usize = 1 << 20;

/// The largest tree that is read in one hold, as counted against `tree_bytes_max`, and the largest
/// number of sessions and of watches. Unit of the first: bytes.
const SMALL_TREE_BYTES: usize = 512 << 10;
const SMALL_COUNT: usize = 2_000;

impl Turns {
    /// Copies the state as it is between two turns. Copies in pieces, between which other turns run;
    /// what they change is not in the copy. Calls `begin` in the turn that the copy shows, again if
    /// the state was replaced meanwhile.
    pub fn copied<T>(&self, begin: impl FnMut(&mut Core) -> T) -> (EngineCopy, T) {
        self.copied_alone(&self.copying.lock(), begin)
    }

    /// Does the same for a caller that holds this lock, because an engine makes one copy at a time.
    fn copied_alone<T>(
        &self,
        _only: &MutexGuard<'_, ()>,
        mut begin: impl FnMut(&mut Core) -> T,
    ) -> (EngineCopy, T) {
        loop {
            let mut core = self.lock();
            work::count(core.engine.counts().sessions);
            core.engine.begin_copy();
            let begun = begin(&mut core);
            Self::unlock(core);
            loop {
                let mut core = self.lock();
                work::count(SLOTS_AT_ONCE);
                let step = core.engine.copy_more(SLOTS_AT_ONCE, BYTES_AT_ONCE);
                Self::unlock(core);
                match step {
                    CopyStep::More => {}
                    CopyStep::Whole(copy) => return (copy, begun),
                    CopyStep::Lost => break,
                }
            }
        }
    }

    /// Reads the whole state as it is between two turns: a small one under the lock, a large one in
    /// a copy. Other readers of a large one wait meanwhile, so that there is one copy and not one for
    /// each of them.
    pub fn view<T>(&self, read: impl FnOnce(&Engine) -> T) -> T {
        self.view_alone(read).0
    }

    /// Does the same. If the state is large, other readers wait until the guard is dropped, too.
    pub fn view_alone<T>(
        &self,
        read: impl FnOnce(&Engine) -> T,
    ) -> (T, Option<MutexGuard<'_, ()>>) {
        {
            let core = self.lock();
            let counts = core.engine.counts();
            if counts.tree_bytes <= SMALL_TREE_BYTES && counts.sessions <= SMALL_COUNT {
                work::count(counts.sessions);
                return (read(&core.engine), None);
            }
        }
        let only = self.copying.lock();
        let (copy, ()) = self.copied_alone(&only, |_| ());
        let seen = read(&copy.finish(SessionId(1)));
        (seen, Some(only))
    }

    /// Reads the whole state with a report of every session, as it is between two turns. If there are
    /// many watches, those are read in pieces afterwards.
    pub fn view_with_sessions<T>(&self, read: impl FnOnce(&Engine, Vec<SessionReport>) -> T) -> T {
        let has_few = |engine: &Engine| {
            let counts = engine.counts();
            counts.watches <= SMALL_COUNT && counts.ephemerals <= SMALL_COUNT
        };
        let reports = |engine: &Engine| {
            let counts = engine.counts();
            work::count(counts.watches + counts.ephemerals);
            engine.session_reports().collect()
        };
        {
            let core = self.lock();
            let counts = core.engine.counts();
            if counts.tree_bytes <= SMALL_TREE_BYTES
                && counts.sessions <= SMALL_COUNT
                && has_few(&core.engine)
            {
                work::count(counts.sessions);
                return read(&core.engine, reports(&core.engine));
            }
        }
        let only = self.copying.lock();
        let (copy, (mut sessions, is_complete)) = self.copied_alone(&only, |core| {
            let engine = &core.engine;
            if has_few(engine) {
                (reports(engine), true)
            } else {
                (engine.session_heads().collect::<Vec<_>>(), false)
            }
        });
        let copy = copy.finish(SessionId(1));
        if !is_complete {
            let owners = copy.session_reports();
            let mut owned: BTreeMap<_, _> = owners.map(|it| (it.id, it.ephemerals)).collect();
            for report in &mut sessions {
                report.ephemerals = owned.remove(&report.id).unwrap_or_default();
            }
            self.add_watches(sessions.iter_mut());
        }
        read(&copy, sessions)
    }

    /// Reports every session, in the order of the table, and what `about` says of each. What
    /// belongs to them is that of one instant if it is little, and otherwise read in pieces.
    pub fn session_reports<T>(
        &self,
        about: impl Fn(&LockedState<'_>, &SessionReport) -> T,
    ) -> Vec<(SessionReport, T)> {
        let (mut reports, is_complete) = self.read(|locked| {
            let counts = locked.engine.counts();
            let is_small = counts.watches <= SMALL_COUNT && counts.ephemerals <= SMALL_COUNT;
            let with = |report| {
                work::count(1);
                let about = about(&locked, &report);
                (report, about)
            };
            let reports: Vec<_> = if is_small {
                work::count(counts.watches + counts.ephemerals);
                locked.engine.session_reports().map(with).collect()
            } else {
                locked.engine.session_heads().map(with).collect()
            };
            (reports, is_small)
        });
        if is_complete {
            return reports;
        }
        let places = reports.iter().enumerate();
        let places: BTreeMap<_, _> = places.map(|(at, (report, _))| (report.id, at)).collect();
        let mut ephemerals: Vec<BTreeSet<(Zxid, String)>> = Vec::new();
        ephemerals.resize_with(reports.len(), BTreeSet::new);
        self.pieces(|engine, from| {
            engine.scan(from, SLOTS_AT_ONCE, |znode| {
                if let Life::Session(owner) = znode.life()
                    && let Some(at) = places.get(&owner)
                {
                    ephemerals[*at].insert((znode.czxid, text(znode.path)));
                }
            })
        });
        for ((report, _), ephemerals) in reports.iter_mut().zip(ephemerals) {
            report.ephemerals = ephemerals.into_iter().map(|(_, path)| path).collect();
        }
        self.add_watches(reports.iter_mut().map(|(report, _)| report));
        reports
    }

    /// Adds the watches of sessions to their reports, in pieces.
    fn add_watches<'a>(&self, reports: impl Iterator<Item = &'a mut SessionReport>) {
        let mut reports: BTreeMap<_, _> = reports.map(|report| (report.id, report)).collect();
        self.pieces(|engine, from| {
            engine.scan_watches(from, SLOTS_AT_ONCE, |session, path, kind| {
                if let Some(report) = reports.get_mut(&session) {
                    report.watches.push((text(path), kind));
                }
            })
        });
        for report in reports.into_values() {
            let mut watches = mem::take(&mut report.watches);
            crate::order::sort_by(&mut watches, Ord::cmp);
            // A watch that was set again meanwhile may have been read twice.
            watches.dedup();
            report.watches = watches;
        }
    }

    /// Counts the watches in the data table; the paths in pieces.
    pub fn watch_summary(&self) -> WatchSummary {
        let mut paths = 0;
        self.pieces(|engine, from| {
            engine.scan_watched_paths(from, SLOTS_AT_ONCE, |_, _| paths += 1)
        });
        WatchSummary {
            paths,
            ..self.inspect(Engine::watch_summary)
        }
    }

    /// Lists the watching sessions of the data table by path, in pieces.
    pub fn watches_by_path(&self, room: Room) -> Listing<String, SessionId> {
        let mut listing = Listing::new(room);
        self.pieces(|engine, from| {
            engine.scan_watched_paths(from, SLOTS_AT_ONCE, |path, sessions| {
                listing.add_path(path, sessions);
            })
        });
        listing
    }

    /// Returns whether whatever reads the whole state is soon done with it.
    pub(crate) fn is_small(&self) -> bool {
        let counts = self.inspect(Engine::counts);
        counts.watches <= SMALL_COUNT
            && counts.ephemerals <= SMALL_COUNT
            && counts.sessions <= SMALL_COUNT
    }

    /// Reads something in pieces, each from where the one before has ended.
    pub fn pieces(&self, mut read: impl FnMut(&Engine, usize) -> Option<usize>) {
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.inspect(|engine| {
                work::count(SLOTS_AT_ONCE);
                read(engine, from)
            });
        }
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
