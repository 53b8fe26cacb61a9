//! [`Engine`]: applies inputs to the state. Has methods for the server and tests: deadlines, marks,
//! forks, restarts, sessions that move.

use minikeeper_protocol::{SessionId, Stat, Ustring, Zxid};

use crate::{
    effects::Effects,
    input::{ConnId, Input, Now, Settings, ZXID_MAX},
    ops::{self, cleanup, events},
    persist::{
        image::Image,
        restore::{ImageError, Restoration},
    },
    report::{
        check::{self, Broken},
        digest::Digests,
        dump,
    },
    state::{
        State,
        copying::StateCopy,
        identities::{Identity, Scheme},
        undo::{Mark, Undo},
    },
};

/// The state of one server. See the crate's documentation.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: State,
    /// The time of the last input.
    pub(crate) elapsed_ms: u64,
    /// The recorded digests, if [`Settings::digests`] is set.
    pub(crate) digests: Option<Digests>,
}

/// Sizes of the state, for status reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// The number of znodes, the four built-in ones included.
    pub znodes: usize,
    /// The number of ephemerals.
    pub ephemerals: usize,
    /// The size of the tree as counted against `tree_bytes_max`, in bytes.
    pub tree_bytes: usize,
    /// The number of sessions, connected or not.
    pub sessions: usize,
    /// The number of pairs of connection and watched path.
    pub watches: usize,
}

impl Engine {
    /// Creates the state of a new server.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            digests: settings.digests.then(Digests::new),
            state: State::new(settings),
            elapsed_ms: 0,
        }
    }

    /// Restores a saved state. `zxid` is the saved zxid of its last change; a later one in a znode
    /// takes precedence.
    ///
    /// Drops ephemerals of unknown sessions (`docs/zookeeper-protocol.md` section 22.1) and keeps
    /// everything else. Sessions are disconnected, and each has its full timeout to be resumed.
    ///
    /// # Errors
    /// When there is no znode, or the zxid leaves no room for changes.
    pub fn restore(restoration: Restoration, zxid: Zxid) -> Result<Self, ImageError> {
        let state = restoration.finish(zxid)?;
        Ok(Self {
            digests: state.settings.digests.then(Digests::new),
            state,
            elapsed_ms: 0,
        })
    }

    /// Returns the whole state, in the form in which it is saved.
    #[must_use]
    pub const fn image(&self) -> Image<'_> {
        Image::new(&self.state)
    }

    /// Applies one input to the state.
    ///
    /// # Panics
    /// If time runs backwards, or on a bug in the engine. The state must not be used afterwards.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
    pub fn apply(&mut self, now: Now, input: &Input, effects: &mut impl Effects) {
        assert!(
            now.elapsed_ms >= self.elapsed_ms,
            "elapsed time never decreases"
        );
        self.elapsed_ms = now.elapsed_ms;
        let state = &mut self.state;
        if state.undo.is_on() {
            state.bound_undo();
        }
        if let Some(digests) = &mut self.digests {
            digests.note(state.zxid, &state.tree);
        }
        ops::serve(state, now, input, effects);
    }

    /// Returns the zxid of the last change.
    #[must_use]
    pub const fn zxid(&self) -> Zxid {
        self.state.zxid
    }

    /// Returns the sizes of the state.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let State {
            tree,
            sessions,
            watches,
            acls,
            ..
        } = &self.state;
        Counts {
            znodes: tree.len(),
            ephemerals: tree.ephemerals(),
            tree_bytes: tree.bytes() + acls.bytes(),
            sessions: sessions.len(),
            watches: watches.len(),
        }
    }

    /// Returns the settings with which the engine was created.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// Returns the data and stat of a znode.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(Option<&[u8]>, Stat)> {
        let znode = &self.state.tree[self.state.tree.find(path.as_bytes())?];
        Some((znode.data(), znode.stat()))
    }

    /// Returns the names of a znode's children, oldest first.
    #[must_use]
    pub fn children(&self, path: &str) -> Option<Vec<String>> {
        let tree = &self.state.tree;
        let id = tree.find(path.as_bytes())?;
        let name = |child| String::from_utf8_lossy(tree[child].name()).into_owned();
        Some(tree.children(id).map(name).collect())
    }

    /// Returns the id, the timeout in milliseconds and the connection, if any, of every session.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, u32, Option<ConnId>)> + '_ {
        self.state
            .sessions
            .iter()
            .map(|(_, session)| (session.id, session.timeout_ms, session.conn))
    }

    /// Verifies every invariant of the whole state.
    ///
    /// # Errors
    /// The first invariant that does not hold, which is a bug in the engine.
    pub fn check(&self) -> Result<(), Broken> {
        check::check(&self.state)
    }

    /// Prints the whole state as text. Equal states give equal texts.
    #[must_use]
    pub fn dump(&self) -> String {
        dump::dump(&self.state)
    }
}

impl Engine {
    /// Returns the next time at which something happens without a request, in milliseconds since
    /// the start: a session expires, or a container or a znode with a TTL is deleted. Callers that
    /// advance the clock need not stop before.
    #[must_use]
    pub fn next_deadline_ms(&mut self, now: Now) -> Option<u64> {
        let expiry = self.state.sessions.next_deadline_ms();
        let cleanup = cleanup::next_due_ms(&self.state, now);
        expiry.into_iter().chain(cleanup).min()
    }

    /// Skips the cleanups before `until_ms` that would delete nothing, for callers that advance the
    /// clock to then. The next tick runs the first one that deletes something.
    pub fn skip_idle_cleanups(&mut self, now: Now, until_ms: u64) {
        cleanup::skip_idle(&mut self.state, now, until_ms);
    }

    /// Does the same as [`Engine::next_deadline_ms`], without the sessions whose clients send
    /// pings. `answers` says whether a session's client does, given the session, its timeout in
    /// milliseconds and its connection.
    #[must_use]
    pub fn next_deadline_of_silent_ms(
        &self,
        now: Now,
        answers: impl Fn(SessionId, u32, ConnId) -> bool,
    ) -> Option<u64> {
        let sessions = &self.state.sessions;
        let silent = sessions.iter().filter(|(_, session)| {
            let answers = |conn| answers(session.id, session.timeout_ms, conn);
            !session.conn.is_some_and(answers)
        });
        let expiry = silent.map(|(key, _)| sessions.deadline_ms(key)).min();
        let cleanup = cleanup::next_due_ms(&self.state, now);
        expiry.into_iter().chain(cleanup).min()
    }

    /// Renews these sessions, as pings of their clients at this time would.
    pub fn renew_sessions(&mut self, now: Now, renewed: &[SessionId]) {
        self.elapsed_ms = self.elapsed_ms.max(now.elapsed_ms);
        let sessions = &mut self.state.sessions;
        for id in renewed {
            if let Some(key) = sessions.find(*id) {
                sessions.touch(key, now);
            }
        }
    }

    /// Returns when to apply the next [`Input::Tick`]: never later than
    /// [`Engine::next_deadline_ms`], and found without a search. It is earlier if a session was
    /// renewed since, unless deadlines are rounded; and while there are containers or znodes with a
    /// time to live, because the time of day may change. It is now while a tick has watches of ended
    /// connections, or changes of removed marks, to drop.
    #[must_use]
    pub fn next_tick_ms(&self) -> Option<u64> {
        if self.state.watches.has_ended() || self.state.undo.has_unneeded() {
            return Some(self.elapsed_ms);
        }
        let expiry = self.state.sessions.look_ms();
        expiry.into_iter().chain(self.state.cleanup_ms).min()
    }

    /// Returns whether [`Engine::next_tick_ms`] has become earlier since the last call, for a
    /// reason other than a handshake.
    pub const fn deadline_moved(&mut self) -> bool {
        std::mem::replace(&mut self.state.deadline_moved, false)
    }
}

impl Engine {
    /// Raises the zxid to this one, as if all changes up to it had happened. Never lowers it, and
    /// never so far that zxids could run out.
    pub fn skip_to(&mut self, zxid: Zxid) {
        let zxid = zxid.min(Zxid(ZXID_MAX));
        self.state.zxid = self.state.zxid.max(zxid);
    }

    /// Sets a mark to [`rewind`](Engine::rewind) to. This costs nothing, but from here on every
    /// change is recorded.
    pub fn mark(&mut self) -> Mark {
        self.state.mark()
    }

    /// Rewinds to a mark and keeps it; removes the marks set after it. The cost grows with the
    /// changes since.
    ///
    /// Restores znodes with their stats, and the watches of connected sessions; those registered since
    /// stay. Sessions that have ended since exist again, each with its full timeout to be resumed.
    /// Sessions opened since are removed, and their connections close. The zxid does not go back,
    /// because clients that have seen it would be refused: rewinding takes a new one. Time does not go
    /// back either.
    ///
    /// Watchers get the events of the differences, with the new zxid.
    ///
    /// Returns false and changes nothing if the mark does not exist: it was removed, or dropped
    /// when more than [`Settings::undo_bytes_max`](crate::Settings::undo_bytes_max) had changed.
    pub fn rewind(&mut self, mark: Mark, now: Now, effects: &mut impl Effects) -> bool {
        self.elapsed_ms = self.elapsed_ms.max(now.elapsed_ms);
        let Some(rewound) = self.state.rewind(mark, now, effects) else {
            return false;
        };
        events::rewound(&mut self.state, &rewound, effects);
        self.state.watch_again(mark, rewound);
        true
    }

    /// Removes a mark. Returns whether it existed. Ticks drop what was recorded for it, some at a time.
    pub fn forget_mark(&mut self, mark: Mark) -> bool {
        self.state.forget_mark(mark)
    }

    /// Creates an independent engine with the same znodes, quotas, zxid, time and sessions, none of
    /// them connected. The next session it opens has the given id.
    #[must_use]
    pub fn fork(&mut self, next_session_id: SessionId) -> Self {
        let state = self.state.fork(next_session_id);
        Self {
            digests: state.settings.digests.then(Digests::new),
            state,
            elapsed_ms: self.elapsed_ms,
        }
    }

    /// Begins such a copy, to be made in pieces by [`Engine::copy_more`]. Whatever happens in
    /// between, it shows the state as it is now. Drops the copy that had begun before, if any.
    pub fn begin_copy(&mut self) {
        self.state.begin_copy();
    }

    /// Continues the copy, by up to `slots` znodes and not many more than `bytes` bytes of paths and
    /// data.
    pub fn copy_more(&mut self, slots: usize, bytes: usize) -> CopyStep {
        match self.state.copy_more(slots, bytes) {
            None => CopyStep::Lost,
            Some(None) => CopyStep::More,
            Some(Some(state)) => CopyStep::Whole(EngineCopy {
                state: Box::new(state),
                elapsed_ms: self.elapsed_ms,
            }),
        }
    }
}

/// The result of [`Engine::copy_more`].
#[derive(Debug)]
pub enum CopyStep {
    /// There is more to copy.
    More,
    /// The copy is whole.
    Whole(EngineCopy),
    /// The state was replaced, or no copy had begun.
    Lost,
}

/// A copy of an engine, whose tables are still to be built.
#[derive(Debug)]
pub struct EngineCopy {
    state: Box<StateCopy>,
    elapsed_ms: u64,
}

impl EngineCopy {
    /// Builds the engine, as [`Engine::fork`] does. Takes time in proportion to the state.
    #[must_use]
    pub fn finish(self, next_session_id: SessionId) -> Engine {
        let state = self.state.finish(next_session_id);
        Engine {
            digests: state.settings.digests.then(Digests::new),
            state,
            elapsed_ms: self.elapsed_ms,
        }
    }
}

/// What a restart keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// Znodes and sessions. Each session has its full timeout to be resumed.
    Everything,
    /// Znodes, but no sessions and so no ephemerals: the state of a ZooKeeper server after it was
    /// down longer than its sessions' timeouts.
    Data,
    /// Only the built-in znodes: the state of a ZooKeeper server after its disk was erased.
    Nothing,
}

impl Engine {
    /// Returns the id of the next new session.
    #[must_use]
    pub const fn next_session_id(&self) -> SessionId {
        self.state.sessions.next_id
    }

    /// Changes the state to that of a server that was stopped and started again. Sends no events;
    /// the caller closes the connections.
    ///
    /// The zxid never goes back, because clients that have seen it would be refused; it grows by
    /// one if something is not kept. Session ids are not reused. All marks are removed.
    pub fn restart(&mut self, keep: Keep, now: Now) {
        match keep {
            Keep::Everything => {}
            Keep::Data => self.state.end_all_sessions(),
            Keep::Nothing => {
                let settings = self.state.settings.clone();
                return self.replace(Self::new(settings), now);
            }
        }
        self.elapsed_ms = now.elapsed_ms;
        self.digests = self.state.settings.digests.then(Digests::new);
        self.state.restart_sessions(now);
    }

    /// Replaces the state by another one, as if the server had been restarted with that.
    ///
    /// As with [`restart`](Engine::restart), the zxid and session ids continue from both states,
    /// and all marks are removed.
    pub fn replace(&mut self, other: Self, now: Now) {
        let before = std::mem::replace(self, other);
        let State {
            zxid,
            sessions,
            undo,
            ..
        } = before.state;
        self.skip_to(Zxid(zxid.0 + 1));
        let next_id = &mut self.state.sessions.next_id;
        *next_id = sessions.next_id.max(*next_id);
        self.state.undo.go_on_from(&undo);
        self.restart(Keep::Everything, now);
    }
}

/// A session on its way from one engine to another.
#[derive(Debug)]
pub struct Handover {
    session: SessionId,
    timeout_ms: u32,
    identities: Vec<Identity>,
}

impl Handover {
    /// Returns the id of the session.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// Returns the session's timeout in milliseconds.
    #[must_use]
    pub const fn timeout_ms(&self) -> u32 {
        self.timeout_ms
    }

    /// Returns the scheme and the id of each identity, for [`Handover::new`].
    pub fn identities(&self) -> impl ExactSizeIterator<Item = (&'static str, &Ustring)> {
        let identities = self.identities.iter();
        identities.map(|identity| (identity.scheme.name(), &identity.id))
    }

    /// Creates one from its parts. Leaves out identities of unknown schemes.
    #[must_use]
    pub fn new(session: SessionId, timeout_ms: u32, identities: &[(Ustring, Ustring)]) -> Self {
        let known = identities.iter().filter_map(|(name, id)| {
            let mut schemes = Scheme::ALL.into_iter();
            let scheme = schemes.find(|scheme| scheme.name().as_bytes() == name.as_bytes())?;
            let id = id.clone();
            Some(Identity { scheme, id })
        });
        Self {
            session,
            timeout_ms,
            identities: known.collect(),
        }
    }
}

impl Engine {
    /// Returns whether a session exists.
    #[must_use]
    pub fn has_session(&self, id: SessionId) -> bool {
        self.state.sessions.find(id).is_some()
    }

    /// Removes a connection with its session. Returns `None` and changes nothing if the connection
    /// has no session, or one with ephemerals or watches here.
    pub fn hand_over(&mut self, conn: ConnId) -> Option<Handover> {
        let state = &mut self.state;
        let entry = state.conns.get(conn)?;
        let session = &state.sessions[entry.session];
        let has_watches = state.watches.conn_watches(conn).next().is_some();
        if has_watches || !session.ephemerals.is_empty() {
            return None;
        }
        let handover = Handover {
            session: session.id,
            timeout_ms: session.timeout_ms,
            identities: state.identities.get(entry.identities).added().to_vec(),
        };
        state.detach(conn);
        state.close_session(entry.session);
        Some(handover)
    }

    /// Adds a session as if it had been opened here, over a connection that was announced with
    /// [`Input::Open`].
    ///
    /// Takes a zxid, as opening a session does. `seen` is the highest zxid that the client can have
    /// seen; it raises the engine's zxid if that is lower. Returns false if the session exists and
    /// is connected.
    pub fn take_over(&mut self, conn: ConnId, handover: Handover, seen: Zxid, now: Now) -> bool {
        self.elapsed_ms = self.elapsed_ms.max(now.elapsed_ms);
        let state = &mut self.state;
        let (id, timeout_ms) = (handover.session, handover.timeout_ms);
        state.zxid = state.zxid.max(seen);
        let key = match state.sessions.find(id) {
            None => {
                state.next_zxid();
                let key = state.sessions.take_over(id, timeout_ms, conn, now);
                state.undo.note(|| Undo::SessionOpened(key));
                key
            }
            // The session existed when this engine was forked, and is waiting for its client.
            Some(key) if state.sessions[key].conn.is_none() => {
                state.sessions.resume(key, now, timeout_ms);
                key
            }
            Some(_) => return false,
        };
        state.attach(conn, key);
        for identity in handover.identities {
            state.add_identity(conn, identity);
        }
        state.deadline_moved = true;
        true
    }
}
