//! Runs random traces on the engine and on the naive model, and compares both.

use std::collections::BTreeMap;

use bytes::Bytes;
use minikeeper_engine::{ConnId, Input, Settings};
use minikeeper_protocol::{ConnectRequest, MultiResult, Reply, Request, SessionId, Xid, Zxid};
use minikeeper_test_kit::requests::LOGINS;
use minikeeper_tests::{
    drive::{Drive, Effect, Sent, decode},
    model::{Model, Output},
};
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner},
};

use crate::{
    effort, seed,
    traces::{CONNS, Step, trace},
};

const TRACES: u32 = 70;

/// No sequence of inputs leads the engine to a reply, event or state that
/// `docs/zookeeper-protocol.md` does not allow. Engine and model run random traces, and everything
/// is compared after every input.
#[test]
fn random_traces_agree_with_the_model() {
    check_random(&settings());
}

/// Sessions expire exactly after their timeout.
#[test]
fn random_traces_agree_with_the_model_under_exact_expiry() {
    let exact = Settings {
        rounds_expiry: false,
        ..settings()
    };
    check_random(&exact);
}

/// The engine is a function of its inputs, whatever the hash seed of its tables. Every random trace
/// runs twice with different hash seeds; effects and dumps after every input are equal.
#[test]
fn random_traces_repeat_exactly() {
    run_property(TRACES * effort(), |steps| {
        let other_hash_seed = Settings {
            hash_seed: [0x5eed, 0xba5e],
            ..settings()
        };
        let (mut first, mut second) = (Run::new(&settings()), Run::new(&other_hash_seed));
        for step in steps {
            let (one, two) = (first.apply_only(step)?, second.apply_only(step)?);
            if one != two {
                return Err(format!(
                    "{step:?}: {one:?} and with another hash seed {two:?}"
                ));
            }
            if first.drive.engine().dump() != second.drive.engine().dump() {
                return Err(format!("{step:?}: the dumps differ"));
            }
        }
        Ok(())
    });
}

/// The traces produce every kind of reply and event.
#[test]
fn random_traces_produce_every_kind_of_effect() {
    let mut runner = runner(TRACES);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..TRACES {
        let steps = trace().new_tree(&mut runner).unwrap().current();
        let mut run = Run::new(&settings());
        for step in &steps {
            for effect in run.apply_only(step).unwrap() {
                let what = match effect.sent {
                    Sent::Connected(response) if response.timeout_ms == 0 => "refused".to_owned(),
                    Sent::Connected(_) => "connected".to_owned(),
                    Sent::Close(why) => format!("{why:?}"),
                    Sent::Event { kind, zxid, .. } => format!("{kind:?} {}", zxid == Zxid::NONE),
                    Sent::BrokenOff { .. } => "broken off".to_owned(),
                    Sent::Reply {
                        outcome: Err(error),
                        ..
                    } => error.name().to_owned(),
                    Sent::Reply {
                        outcome: Ok(reply), ..
                    } => reply_kind(&reply),
                };
                *seen.entry(what).or_default() += 1;
            }
        }
    }
    for what in [
        "refused",
        "connected",
        "SessionClosed",
        "SessionExpired",
        "SessionMoved",
        "SessionRefused",
        "ZxidAhead",
        "UnknownOp",
        "Created false",
        "Created true",
        "Deleted false",
        "Deleted true",
        "DataChanged false",
        "DataChanged true",
        "ChildrenChanged false",
        "ChildrenChanged true",
        "NONODE",
        "BADVERSION",
        "NODEEXISTS",
        "NOTEMPTY",
        "NOCHILDRENFOREPHEMERALS",
        "BADARGUMENTS",
        "INVALIDACL",
        "MARSHALLINGERROR",
        "UNIMPLEMENTED",
        "RECONFIGDISABLED",
        "NOWATCHER",
        "multi done",
        "multi failed",
        "Ephemerals",
        "broken off",
    ] {
        let count = seen.get(what).copied().unwrap_or(0);
        assert!(count > 0, "{what}: never in {seen:#?}");
    }
}

fn reply_kind(reply: &Reply) -> String {
    match reply {
        Reply::Multi(results) if results.is_empty() => "multi empty".to_owned(),
        Reply::Multi(results) => {
            let failed = |result: &MultiResult| matches!(result, MultiResult::Error(_));
            let failed = results.iter().any(failed);
            if failed { "multi failed" } else { "multi done" }.to_owned()
        }
        Reply::Ephemerals(paths) if !paths.is_empty() => "Ephemerals".to_owned(),
        _ => "reply".to_owned(),
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        tick_ms: 1_000,
        session_timeout_min_ms: 2_000,
        session_timeout_max_ms: 20_000,
        super_digest: Some(LOGINS[2].1.into()),
        ..Settings::default()
    }
}

/// Runs random traces on the engine and on the model until they differ.
fn check_random(settings: &Settings) {
    // The order in which containers are deleted is not specified; the cleanup has its own tests.
    let settings = Settings {
        container_check_interval_ms: 0,
        ..settings.clone()
    };
    run_property(TRACES * effort(), |steps| check_trace(&settings, steps));
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        max_shrink_iters: 20_000,
        rng_seed: RngSeed::Fixed(seed()),
        failure_persistence: None,
        ..Config::default()
    })
}

/// Checks a property on random traces.
///
/// # Panics
/// With the smallest trace for which the property fails.
pub(crate) fn run_property(cases: u32, property: impl Fn(&[Step]) -> Result<(), String>) {
    let property = |steps: Vec<Step>| property(&steps).map_err(TestCaseError::fail);
    match runner(cases).run(&trace(), property) {
        Ok(()) => {}
        Err(TestError::Fail(reason, steps)) => {
            let seed = seed();
            panic!("{reason}\nsmallest trace: {steps:#?}\nrepeat with MINIKEEPER_SEED={seed}");
        }
        Err(TestError::Abort(reason)) => panic!("too many traces were rejected: {reason}"),
    }
}

/// Runs random traces on the engine, and checks the final state of each.
pub(crate) fn check_final_states(traces: u32, check: impl Fn(&Drive) -> Result<(), String>) {
    run_property(traces, |steps| {
        let mut run = Run::new(&settings());
        for step in steps {
            run.apply_only(step)?;
        }
        check(&run.drive)
    });
}

/// Runs one trace on engine and model, and compares everything after every input.
fn check_trace(settings: &Settings, steps: &[Step]) -> Result<(), String> {
    let mut run = Run::new(settings);
    let mut model = Model::new(settings);
    for step in steps {
        for input in run.inputs(step) {
            let effects = run.apply(&input)?;
            let expected = model.apply(run.drive.now(), &input, run.drive.ended())?;
            compare(&input, &effects, expected)?;
            compare_states(&run.drive, &model).map_err(|fault| format!("{input:?}: {fault}"))?;
        }
    }
    Ok(())
}

/// An engine, and the sessions and connections that a trace refers to.
pub(crate) struct Run {
    pub(crate) drive: Drive,
    /// The sessions in the order in which they were opened, with their passwords.
    sessions: Vec<(SessionId, Bytes)>,
    is_used: [bool; CONNS as usize],
    /// How often each connection number was opened.
    openings: [u32; CONNS as usize],
    xid: i32,
    /// The time of the next tick.
    until_ms: u64,
}

impl Run {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            drive: Drive::new(settings.clone()),
            sessions: Vec::new(),
            is_used: [false; CONNS as usize],
            openings: [0; CONNS as usize],
            xid: 0,
            until_ms: 0,
        }
    }

    /// Records that the engine has closed a connection.
    pub(crate) fn record_closed(&mut self, conn: ConnId) {
        self.is_used[conn.0 as usize] = false;
    }

    /// Returns the connected sessions, each with its connection and how often that was opened.
    pub(crate) fn connected(&self) -> Vec<(SessionId, ConnId, u32)> {
        let sessions = self.drive.engine().sessions();
        let connected = sessions.filter_map(|(id, _, conn)| Some((id, conn?)));
        connected
            .map(|(id, conn)| (id, conn, self.openings[conn.0 as usize]))
            .collect()
    }

    /// Returns the engine's inputs for a step. A connection makes one handshake, so another
    /// handshake with the same connection number is preceded by a disconnect.
    fn inputs(&mut self, step: &Step) -> Vec<Input> {
        let mut inputs = Vec::new();
        let hello = match step {
            Step::Open { conn, timeout_ms } => Some((*conn, ConnectRequest::new(*timeout_ms))),
            Step::OpenAhead { conn } => {
                let last_zxid_seen = Zxid(self.drive.engine().zxid().0 + 1);
                let hello = ConnectRequest {
                    last_zxid_seen,
                    ..ConnectRequest::new(10_000)
                };
                Some((*conn, hello))
            }
            Step::Resume {
                conn,
                session,
                is_password_right,
            } => {
                let unknown = (SessionId(77), Bytes::from_static(&[1; 16]));
                let (session_id, password) = self.sessions.get(*session).unwrap_or(&unknown);
                let password = if *is_password_right {
                    password.clone()
                } else {
                    password.slice(1..)
                };
                let hello = ConnectRequest {
                    session_id: *session_id,
                    password: Some(password),
                    read_only: None,
                    ..ConnectRequest::new(5_000)
                };
                Some((*conn, hello))
            }
            _ => None,
        };
        if let Some((conn, hello)) = hello {
            if std::mem::replace(&mut self.is_used[conn as usize], true) {
                inputs.push(Input::Disconnect { conn: ConnId(conn) });
            }
            self.openings[conn as usize] += 1;
            let conn = ConnId(conn);
            inputs.push(Input::Connect {
                conn,
                hello,
                is_read_only: false,
            });
            return inputs;
        }
        self.xid += 1;
        match step {
            Step::Request { conn, .. } if self.should_open_first(*conn) => {
                inputs = self.inputs(&Step::Open {
                    conn: *conn,
                    timeout_ms: 10_000,
                });
            }
            _ => {}
        }
        match step {
            Step::Request { conn, request } => inputs.push(Input::Request {
                conn: ConnId(*conn),
                xid: Xid(self.xid),
                request: through_codec(request),
            }),
            Step::Raw { conn, op, body } => {
                let mut message = self.xid.to_be_bytes().to_vec();
                message.extend(op.to_be_bytes());
                message.extend(body);
                inputs.push(decode(ConnId(*conn), &message.into()).expect("the header is whole"));
            }
            Step::Disconnect { conn } => {
                self.is_used[*conn as usize] = false;
                inputs.push(Input::Disconnect {
                    conn: ConnId(*conn),
                });
            }
            Step::Expire { session } => {
                if let Some((session, _)) = self.sessions.get(*session) {
                    inputs.push(Input::Expire { session: *session });
                }
            }
            Step::Advance { by_ms } => {
                self.until_ms = self.drive.now().elapsed_ms + by_ms;
                inputs.push(Input::Tick);
            }
            Step::Open { .. } | Step::OpenAhead { .. } | Step::Resume { .. } => {}
        }
        inputs
    }

    /// Returns whether to open a session before a request. Connections end in many ways, and
    /// requests on a closed one are dropped. Without most of them opening again, traces would soon
    /// do nothing.
    fn should_open_first(&self, conn: u32) -> bool {
        let mut sessions = self.drive.engine().sessions();
        let is_attached = sessions.any(|(_, _, attached)| attached == Some(ConnId(conn)));
        !is_attached && self.xid % 4 != 0
    }

    fn apply(&mut self, input: &Input) -> Result<Vec<Effect>, String> {
        if matches!(input, Input::Tick) {
            // One late tick at the end, so that several expiry buckets are due at once.
            self.drive.set_elapsed(self.until_ms);
        }
        let effects = self.drive.apply(input)?;
        for effect in &effects {
            if let Sent::Connected(response) = &effect.sent
                && response.timeout_ms > 0
                && !self
                    .sessions
                    .iter()
                    .any(|(id, _)| *id == response.session_id)
            {
                let password = response.password.clone().unwrap_or_default();
                self.sessions.push((response.session_id, password));
            }
        }
        Ok(effects)
    }

    pub(crate) fn apply_only(&mut self, step: &Step) -> Result<Vec<Effect>, String> {
        let mut all = Vec::new();
        for input in self.inputs(step) {
            all.extend(self.apply(&input)?);
        }
        Ok(all)
    }
}

/// Returns the request as it arrives: encoded and decoded.
fn through_codec(request: &Request) -> Request {
    let mut out = Vec::new();
    request.encode(Xid(0), &mut out);
    match decode(ConnId(0), &Bytes::from(out).slice(4..)) {
        Ok(Input::Request { request, .. }) => request,
        other => panic!("{request:?} arrives as {other:?}"),
    }
}

/// Compares what each connection received, in order, except for the order of names in listings and
/// of the events when a session ends.
fn compare(input: &Input, effects: &[Effect], expected: Output) -> Result<(), String> {
    let ends_sessions = matches!(
        input,
        Input::Tick
            | Input::Expire { .. }
            | Input::Request {
                request: Request::CloseSession,
                ..
            }
    );
    let mut by_conn: BTreeMap<u32, [Vec<Sent>; 2]> = BTreeMap::new();
    for effect in effects {
        by_conn.entry(effect.conn).or_default()[0].push(effect.sent.clone());
    }
    for (conn, sent) in expected {
        by_conn.entry(conn).or_default()[1].push(sent);
    }
    for (conn, mut lists) in by_conn {
        for list in &mut lists {
            list.iter_mut().for_each(Sent::sort_names);
            if ends_sessions {
                sort_events(list);
            }
        }
        let [got, wanted] = lists;
        if got != wanted {
            return Err(format!(
                "{input:?}: connection {conn}\n  expected {wanted:?}\n  got      {got:?}"
            ));
        }
    }
    Ok(())
}

/// Sorts runs of events with the same zxid.
fn sort_events(list: &mut [Sent]) {
    let zxid_of = |sent: &Sent| match sent {
        Sent::Event { zxid, .. } => Some(*zxid),
        _ => None,
    };
    for run in list.chunk_by_mut(|a, b| zxid_of(a).is_some() && zxid_of(a) == zxid_of(b)) {
        run.sort_by_key(|sent| format!("{sent:?}"));
    }
}

fn compare_states(drive: &Drive, model: &Model) -> Result<(), String> {
    let engine = drive.engine();
    if engine.zxid() != model.zxid() {
        return Err(format!("zxid {} for {}", engine.zxid(), model.zxid()));
    }
    let (counts, paths) = (engine.counts(), model.paths().count());
    if counts.znodes != paths || counts.watches != model.watches() {
        let watches = model.watches();
        return Err(format!(
            "{counts:?} for {paths} znodes and {watches} watches"
        ));
    }
    for path in model.paths() {
        let (got, wanted) = (engine.get(path), model.get(path));
        if got != wanted {
            return Err(format!("{path}: {got:?} for {wanted:?}"));
        }
        let mut names = engine.children(path).unwrap_or_default();
        names.sort();
        if names != model.children(path) {
            return Err(format!(
                "{path}: children {names:?} for {:?}",
                model.children(path)
            ));
        }
    }
    let mut got: Vec<_> = engine
        .sessions()
        .map(|(id, timeout_ms, conn)| (id, timeout_ms, conn.map(|conn| conn.0)))
        .collect();
    got.sort_unstable();
    let wanted: Vec<_> = model.sessions().collect();
    if got != wanted {
        return Err(format!("sessions {got:?} for {wanted:?}"));
    }
    Ok(())
}
