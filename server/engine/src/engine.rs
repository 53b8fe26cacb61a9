//! The engine: takes inputs in and answers questions about the state.

use minikeeper_protocol::{ErrorCode, ReplyRef, Request, SessionId, Stat, Xid, Zxid};

use crate::{
    effects::{CloseReason, Effects},
    input::{ConnId, Input, Now, Settings},
    ops::{self, answer::Answer, watch::WatchLists},
    persist::{image::Image, image_error::ImageError, restore::Restoration},
    report::{
        check::{self, Broken},
        digest::Digests,
        dump,
    },
    state::{Caller, State, conns::Conn},
};

/// The state of one server. See the crate's documentation.
#[derive(Debug)]
pub struct Engine {
    pub(crate) state: State,
    /// The time of the newest input.
    pub(crate) elapsed_ms: u64,
    /// While they are wanted.
    pub(crate) digests: Option<Digests>,
}

/// How much of everything there is, for status reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Znodes, the four built-in ones included.
    pub znodes: usize,
    /// Ephemerals among them.
    pub ephemerals: usize,
    /// What the tree is counted with against `tree_bytes_max`, in bytes.
    pub tree_bytes: usize,
    /// Sessions, connected or not.
    pub sessions: usize,
    /// Pairs of connection and watched path.
    pub watches: usize,
}

impl Engine {
    /// The state of a server that has just been started.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            digests: settings.digests.then(Digests::new),
            state: State::new(settings),
            elapsed_ms: 0,
        }
    }

    /// The state that was saved, at its newest change; `zxid` is what was saved as that, and
    /// counts unless a znode knows of a later one.
    ///
    /// Ephemerals of unknown sessions are gone (`docs/zookeeper-protocol.md` section 22.1);
    /// everything else is there, sessions waiting for their clients with a whole timeout before
    /// them.
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

    /// The whole state, in the form it is saved in.
    #[must_use]
    pub const fn image(&self) -> Image<'_> {
        Image::new(&self.state)
    }

    /// Lets one thing happen.
    ///
    /// # Panics
    /// If time runs backwards, or by a bug in here: then the state must not be used any more.
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
        match input {
            Input::Request { conn, xid, request } => {
                let Some(caller) = admit(state, *conn, now) else {
                    return;
                };
                if matches!(request, Request::Auth { .. } | Request::Sasl { .. }) {
                    let answer = Answer::to(*conn, *xid, effects);
                    return ops::auth::serve(state, caller, request, answer);
                }
                if !enter(state, caller, *xid, effects) {
                    return;
                }
                serve(state, caller, request, Answer::to(*conn, *xid, effects));
                if let Some(limit) = state.limit_hit.take() {
                    effects.limit_hit(limit, state.settings.max_of(limit));
                }
            }
            rare => apply_rare(state, now, rare, effects),
        }
    }

    /// The number of the newest change.
    #[must_use]
    pub const fn zxid(&self) -> Zxid {
        self.state.zxid
    }

    /// How much of everything there is.
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

    /// The settings the engine was started with.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// The data and stat of a znode.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<(Option<&[u8]>, Stat)> {
        let znode = &self.state.tree[self.state.tree.find(path.as_bytes())?];
        Some((znode.data(), znode.stat()))
    }

    /// The names of a znode's children, oldest first.
    #[must_use]
    pub fn children(&self, path: &str) -> Option<Vec<String>> {
        let tree = &self.state.tree;
        let id = tree.find(path.as_bytes())?;
        let name = |child| String::from_utf8_lossy(tree[child].name()).into_owned();
        Some(tree.children(id).map(name).collect())
    }

    /// Every session: its id, its timeout in milliseconds, and its connection if it has one.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, u32, Option<ConnId>)> + '_ {
        self.state
            .sessions
            .iter()
            .map(|(_, session)| (session.id, session.timeout_ms, session.conn))
    }

    /// Verifies every invariant of the whole state.
    ///
    /// # Errors
    /// The first one that does not hold: a bug in here.
    pub fn check(&self) -> Result<(), Broken> {
        check::check(&self.state)
    }

    /// The whole state as text: the same state gives the same text.
    #[must_use]
    pub fn dump(&self) -> String {
        dump::dump(&self.state)
    }
}

/// Whatever is not a request that could be decoded.
#[inline(never)]
fn apply_rare(state: &mut State, now: Now, input: &Input, effects: &mut impl Effects) {
    match input {
        Input::Request { .. } => {}
        Input::Open { conn, peer } => state.open(*conn, *peer),
        Input::Identify { conn, subject } => ops::auth::identify(state, *conn, subject, effects),
        Input::Connect { conn, hello } => {
            ops::session::connect(state, *conn, now, hello, effects);
        }
        Input::Undecodable {
            conn,
            xid,
            consumes_zxid,
        } => {
            if let Some(caller) = admit(state, *conn, now)
                && enter(state, caller, *xid, effects)
            {
                let zxid = if *consumes_zxid {
                    state.next_zxid()
                } else {
                    state.zxid
                };
                Answer::to(*conn, *xid, effects).refuse(zxid, ErrorCode::MarshallingError);
            }
        }
        Input::UnknownOp { conn, xid } => {
            if let Some(caller) = admit(state, *conn, now)
                && enter(state, caller, *xid, effects)
            {
                refuse_unknown(state, Answer::to(*conn, *xid, effects));
            }
        }
        // `docs/zookeeper-protocol.md` section 17.2: it keeps the session alive like any request.
        Input::Refused { conn, xid, error } => {
            if let Some(caller) = admit(state, *conn, now)
                && enter(state, caller, *xid, effects)
            {
                Answer::to(*conn, *xid, effects).refuse(state.zxid, *error);
            }
        }
        Input::Disconnect { conn } => state.detach(*conn),
        Input::Tick => {
            ops::session::expire_due(state, now, effects);
            ops::cleanup::run_if_due(state, now, effects);
        }
        Input::Expire { session } => {
            if let Some(session) = state.sessions.find(*session) {
                ops::session::expire(state, session, now, effects);
            }
        }
    }
}

/// A request is heard only on a connection with a living session.
#[inline]
fn admit(state: &State, conn: ConnId, now: Now) -> Option<Caller> {
    let Conn {
        session,
        identities,
    } = state.conns.get(conn)?;
    Some(Caller {
        conn,
        session,
        identities,
        now,
    })
}

/// What goes through the original's queue keeps the session alive, unless the server demands
/// another identity first: then it has been answered.
#[inline(always)]
#[expect(clippy::inline_always, reason = "measured: see benches/README.md")]
fn enter(state: &mut State, caller: Caller, xid: Xid, effects: &mut impl Effects) -> bool {
    let may_enter = ops::auth::lets_through(state, caller, xid, effects);
    if may_enter {
        state.sessions.touch(caller.session, caller.now);
    }
    may_enter
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "five percent of a getData, measured")]
fn serve(
    state: &mut State,
    caller: Caller,
    request: &Request,
    mut answer: Answer<'_, impl Effects>,
) {
    match request {
        Request::GetData { path, watch } => {
            ops::read::get_data(state, caller, path.as_ref(), *watch, answer);
        }
        Request::SetData {
            path,
            data,
            version,
        } => {
            ops::set::set_data(
                state,
                caller,
                path.as_ref(),
                data.as_ref(),
                *version,
                answer,
            );
        }
        Request::Create(create) => ops::create::create(state, caller, create, answer),
        Request::Delete { path, version } => {
            ops::delete::delete(state, caller, path.as_ref(), *version, answer);
        }
        Request::Exists { path, watch } => {
            ops::read::exists(state, caller, path.as_ref(), *watch, answer);
        }
        Request::GetChildren { path, watch } => {
            ops::read::get_children(state, caller, path.as_ref(), *watch, false, answer);
        }
        Request::GetChildren2 { path, watch } => {
            ops::read::get_children(state, caller, path.as_ref(), *watch, true, answer);
        }
        Request::Ping => {
            answer.xid = Xid::PING;
            answer.send(state.zxid, ReplyRef::Empty);
        }
        Request::Multi(requests) => ops::multi::multi(state, caller, requests, answer),
        Request::MultiRead(requests) => ops::multi::multi_read(state, caller, requests, answer),
        Request::MultiReadOfChanges(requests) => {
            ops::multi::multi_read_of_changes(state, requests, answer);
        }
        Request::GetAcl { path } => ops::read::get_acl(state, caller, path.as_ref(), answer),
        Request::SetAcl { path, acl, version } => {
            ops::set::set_acl(state, caller, path.as_ref(), acl, *version, answer);
        }
        Request::Sync { path } => ops::read::sync(state, path.as_ref(), answer),
        Request::GetEphemerals { prefix } => {
            ops::read::get_ephemerals(state, caller, prefix.as_ref(), answer);
        }
        Request::GetAllChildrenNumber { path } => {
            ops::read::get_all_children_number(state, caller, path.as_ref(), answer);
        }
        Request::SetWatches {
            relative_zxid,
            data,
            exist,
            child,
        } => {
            let lists = WatchLists {
                relative_zxid: *relative_zxid,
                data,
                exist,
                child,
                persistent: &[],
                persistent_recursive: &[],
            };
            ops::watch::set_watches(state, caller, &lists, answer);
        }
        Request::SetWatches2 {
            relative_zxid,
            data,
            exist,
            child,
            persistent,
            persistent_recursive,
        } => {
            let relative_zxid = *relative_zxid;
            let lists = WatchLists {
                relative_zxid,
                data,
                exist,
                child,
                persistent,
                persistent_recursive,
            };
            ops::watch::set_watches(state, caller, &lists, answer);
        }
        Request::AddWatch { path, mode } => {
            ops::watch::add_watch(state, caller, path.as_ref(), *mode, answer);
        }
        Request::CheckWatches { path, kind } => {
            ops::watch::check_watches(state, caller, path.as_ref(), *kind, answer);
        }
        Request::RemoveWatches { path, kind } => {
            ops::watch::remove_watches(state, caller, path.as_ref(), *kind, answer);
        }
        // A standalone server cannot; a failed write uses up a zxid.
        Request::Reconfig { .. } => {
            let error = if state.settings.reconfig_enabled {
                ErrorCode::Unimplemented
            } else {
                ErrorCode::ReconfigDisabled
            };
            let zxid = state.next_zxid();
            answer.refuse(zxid, error);
        }
        Request::CloseSession => ops::session::close_session(state, caller, answer),
        Request::WhoAmI => ops::auth::who_am_i(state, caller, answer),
        // Served before.
        Request::Auth { .. } | Request::Sasl { .. } => {}
        // Alone a check is unknown since 3.9.3; the internal operations are not for clients
        // (`docs/zookeeper-protocol.md` section 26).
        Request::Check { .. } | Request::CreateSession | Request::DeleteContainer { .. } => {
            refuse_unknown(state, answer);
        }
    }
}

/// Answers an operation that does not exist, and closes the connection.
fn refuse_unknown(state: &mut State, answer: Answer<'_, impl Effects>) {
    let why = CloseReason::UnknownOp;
    answer.refuse_and_close(state, Zxid::NONE, ErrorCode::Unimplemented, why);
}
