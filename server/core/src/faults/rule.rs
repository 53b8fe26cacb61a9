//! A fault in force: its counts, and the events that it holds.

use std::sync::Arc;

use minikeeper_engine::{ConnId, Input};
use minikeeper_protocol::{ErrorCode, OpCode, SessionId};

use crate::{
    faults::{
        action::FaultAction,
        chance::Chance,
        error::FaultError,
        fault::Fault,
        hits::Hits,
        op::FaultOp,
        place::{Deed, FaultPlace, PathPattern},
        who::FaultFor,
    },
    glob::{self, Glob},
    peer::Peer,
};

/// The maximum number of operations that a fault names: all of them.
const OPS_MAX: usize = OpCode::ALL.len() + 3;

/// The maximum number of changes that are taken back. A mark of the state is kept for each.
pub const ROLLBACK_MAX: u32 = 1_000;

/// A client's message, with its session and address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) input: &'a Input,
    pub(crate) session: SessionId,
    pub(crate) peer: &'a Peer,
}

/// An event that is held back.
#[derive(Debug)]
pub(crate) struct HeldEvent {
    pub(crate) conn: ConnId,
    /// The whole frame.
    pub(crate) frame: Vec<u8>,
    /// Whether a request of its watcher has been served since.
    pub(crate) is_late: bool,
    /// When it is sent at the latest, in milliseconds since the start; `u64::MAX` if it waits for
    /// the fault to be removed.
    pub(crate) until_ms: u64,
}

/// Whom a fault no longer serves.
#[derive(Debug)]
pub(crate) struct ShutOut {
    /// `None` for everyone.
    pub(crate) sessions: Option<Vec<SessionId>>,
    /// Until when, in milliseconds since the start; `u64::MAX` if until the fault is removed.
    pub(crate) until_ms: u64,
}

/// An injected fault.
#[derive(Debug)]
pub struct Rule {
    pub(crate) id: u64,
    pub(crate) fault: Fault,
    pub(crate) hits: Arc<Hits>,
    /// Events it holds, oldest first.
    pub(crate) held: Vec<HeldEvent>,
    /// Whom it no longer serves, since it has acted.
    pub(crate) shut_out: Option<ShutOut>,
    /// Where it acts, in place of the other conditions of the fault.
    pub(crate) place: Option<FaultPlace>,
    glob: Option<Glob>,
    chance: Chance,
    matches: u64,
    /// The number of times it was decided that it acts. `hits` counts only after the act.
    acts: u64,
}

impl Rule {
    /// Puts a fault in force.
    ///
    /// # Errors
    /// When the fault makes no sense.
    pub fn new(id: u64, fault: Fault) -> Result<Self, FaultError> {
        check(&fault)?;
        let glob = match &fault.path {
            None => None,
            Some(pattern) => Some(Glob::new(pattern).map_err(|why| FaultError::Path {
                // Cut off, because it may be of any length.
                pattern: pattern.chars().take(100).collect(),
                why,
            })?),
        };
        Ok(Self {
            id,
            chance: Chance::new(fault.seed),
            fault,
            hits: Arc::default(),
            held: Vec::new(),
            shut_out: None,
            place: None,
            glob,
            matches: 0,
            acts: 0,
        })
    }

    /// Returns whether it acts on a client's message. `client` is the number of its session.
    pub(crate) fn acts_on(&mut self, subject: &Subject<'_>, client: Option<u32>) -> bool {
        let is_met = match self.fault.action {
            FaultAction::Refuse | FaultAction::HoldEvents | FaultAction::DelayEvents(_) => false,
            FaultAction::Error(_) | FaultAction::Pause(_) | FaultAction::ClientOutage(_) => {
                !matches!(subject.input, Input::Connect { .. })
            }
            _ => true,
        };
        if let Some(place) = &mut self.place {
            // Also what the fault does not act on tells the clients apart.
            return is_reached(place, subject) && is_met && self.decide();
        }
        let Fault { ops, who, .. } = &self.fault;
        is_met
            && who.is(subject.session, client, subject.peer)
            && (ops.is_empty() || ops.iter().any(|op| op.is_of(subject.input)))
            && self.is_about(subject.input)
            && self.decide()
    }

    /// Returns whether it closes the connection of this session, whatever it sends.
    pub(crate) fn shuts_out(&self, session: SessionId, now_ms: u64) -> bool {
        self.shut_out.as_ref().is_some_and(|out| {
            now_ms < out.until_ms
                && (out.sessions.as_ref()).is_none_or(|sessions| sessions.contains(&session))
        })
    }

    /// Begins an outage, if this is one, with a message of this session.
    pub(crate) fn begin_outage(&mut self, session: SessionId, now_ms: u64) {
        let (lasting, sessions) = match self.fault.action {
            FaultAction::Outage(lasting) => (lasting, None),
            FaultAction::ClientOutage(lasting) => (lasting, Some(vec![session])),
            _ => return,
        };
        let lasting_ms = u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX);
        self.shut_out = Some(ShutOut {
            sessions,
            until_ms: now_ms.saturating_add(lasting_ms),
        });
    }

    /// Returns whether it stops every ping of this session. A fault that acts a limited number of
    /// times, or by chance, lets one through sooner or later.
    pub(crate) fn silences(
        &self,
        (session, client): (SessionId, Option<u32>),
        peer: &Peer,
        timeout_ms: u32,
    ) -> bool {
        let Fault {
            action,
            ops,
            path,
            who,
            skip,
            count,
            probability,
            ..
        } = &self.fault;
        let is_silent = match action {
            FaultAction::DropRequest => true,
            FaultAction::Delay(by) => by.as_millis() >= timeout_ms.into(),
            _ => false,
        };
        let pings = [FaultOp::Any, FaultOp::Op(OpCode::Ping)];
        is_silent
            && path.is_none()
            && count.is_none()
            && *probability >= 1.0
            && self.matches >= *skip
            && (ops.is_empty() || ops.iter().any(|op| pings.contains(op)))
            && who.is(session, client, peer)
    }

    /// Returns whether it refuses a connection from this address.
    pub(crate) fn refuses(&mut self, peer: &Peer) -> bool {
        self.fault.action == FaultAction::Refuse
            && self.fault.who.is(SessionId::NONE, None, peer)
            && self.decide()
    }

    /// Returns whether it holds events back for a time, rather than until it is removed.
    pub(crate) const fn delays_events(&self) -> bool {
        matches!(self.fault.action, FaultAction::DelayEvents(_))
    }

    /// Returns whether it holds back an event for this connection.
    pub(crate) fn holds(
        &mut self,
        (session, client): (SessionId, Option<u32>),
        peer: &Peer,
        path: &[u8],
    ) -> bool {
        if let Some(place) = &mut self.place {
            let event = Deed {
                session,
                op: None,
                is_at: &|pattern| pattern.matches(path),
            };
            return self.fault.action.is_on_events() && place.is_reached(&event) && self.decide();
        }
        self.fault.action.is_on_events()
            && self.fault.who.is(session, client, peer)
            && self.glob.as_ref().is_none_or(|glob| glob.matches(path))
            && self.decide()
    }

    /// Counts a match. Returns whether the fault acts on it.
    fn decide(&mut self) -> bool {
        self.hits.matched();
        self.matches += 1;
        let Fault {
            skip,
            count,
            probability,
            ..
        } = self.fault;
        let acts = self.matches > skip
            && count.is_none_or(|count| self.acts < count)
            && self.chance.happens(probability);
        self.acts += u64::from(acts);
        acts
    }

    /// Returns whether a message has a path that matches.
    fn is_about(&self, input: &Input) -> bool {
        let Some(glob) = &self.glob else {
            return true;
        };
        let Input::Request { request, .. } = input else {
            return false;
        };
        request.any_path(|path| glob.matches(path.as_bytes()))
    }
}

/// Takes note of a request, and returns whether a place is reached with it.
fn is_reached(place: &mut FaultPlace, subject: &Subject<'_>) -> bool {
    let Input::Request { request, .. } = subject.input else {
        return false;
    };
    let op = request.op();
    if op == OpCode::Ping || subject.session == SessionId::NONE {
        return false;
    }
    let deed = Deed {
        session: subject.session,
        op: Some(op),
        is_at: &|pattern| {
            matches!(pattern, PathPattern::Any)
                || request.any_path(|path| pattern.matches(path.as_bytes()))
        },
    };
    place.is_reached(&deed)
}

const fn is_create(op: OpCode) -> bool {
    matches!(
        op,
        OpCode::Create
            | OpCode::Create2
            | OpCode::CreateContainer
            | OpCode::CreateTtl
            | OpCode::Multi
    )
}

/// Checks a fault, except for the names in its path.
fn check(fault: &Fault) -> Result<(), FaultError> {
    if !(0.0..=1.0).contains(&fault.probability) {
        return Err(FaultError::Probability(fault.probability));
    }
    if fault.count == Some(0) {
        return Err(FaultError::NeverActs);
    }
    if fault.ops.len() > OPS_MAX {
        return Err(FaultError::TooManyOps {
            count: fault.ops.len(),
            max: OPS_MAX,
        });
    }
    let action = fault.action.name();
    let pointless = |by| Err(FaultError::Pointless { action, by });
    if let Some(pattern) = &fault.path
        && glob::ends_with_slash(pattern)
        && !(fault.ops.iter()).any(|op| matches!(op, FaultOp::Op(op) if is_create(*op)))
    {
        return Err(FaultError::Path {
            pattern: pattern.chars().take(100).collect(),
            why: "ends with a slash, which only the path of a sequential create does: also name that \
                  operation (create), or write /q for the znode and /q/* for its children",
        });
    }
    if (fault.action.delay()).is_some_and(|by| by.as_millis() == 0) {
        return Err(FaultError::Incomplete {
            action,
            needs: "a duration of at least 1 ms",
        });
    }
    let names_op = fault.ops.iter().any(|op| *op != FaultOp::Any);
    match fault.action {
        FaultAction::Error(ErrorCode::Other(0)) => Err(FaultError::Incomplete {
            action,
            needs: "an error code other than 0, which is success",
        }),
        FaultAction::Rollback(0) => Err(FaultError::Incomplete {
            action,
            needs: "a number of changes of at least 1",
        }),
        FaultAction::Rollback(changes) if changes > ROLLBACK_MAX => Err(FaultError::Incomplete {
            action,
            needs: "a number of changes of at most 1,000",
        }),
        FaultAction::ClientOutage(_) | FaultAction::Pause(_) if fault.ops == [FaultOp::Connect] => {
            pointless("the handshake: the client has no session yet")
        }
        FaultAction::Error(_) if fault.ops == [FaultOp::Connect] => {
            pointless("the handshake, whose reply has no field for an error: use cut or refuse")
        }
        FaultAction::Refuse if fault.path.is_some() => pointless("a path: there is no request yet"),
        FaultAction::Refuse if names_op => pointless("an operation: there is no request yet"),
        FaultAction::Refuse if matches!(fault.who, FaultFor::Session(_) | FaultFor::Client(_)) => {
            pointless("a session: it is not known yet")
        }
        FaultAction::HoldEvents | FaultAction::DelayEvents(_) if names_op => {
            pointless("an operation: an event has none")
        }
        _ if fault.ops == [FaultOp::Connect] && matches!(fault.who, FaultFor::Client(_)) => {
            pointless("the handshakes of a client: its number is not known yet")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use minikeeper_protocol::{
        ConnectRequest, Create, CreateMode, CreateOp, MultiOp, Request, Xid,
    };

    use super::*;

    const CONN: ConnId = ConnId(0);

    fn request(request: Request) -> Input {
        Input::Request {
            conn: CONN,
            xid: Xid(1),
            request,
        }
    }

    fn get(path: &str) -> Input {
        request(Request::GetData {
            path: Some(path.into()),
            watch: false,
        })
    }

    fn acts(rule: &mut Rule, input: &Input) -> bool {
        let subject = Subject {
            input,
            session: SessionId(7),
            peer: &Peer::Local,
        };
        rule.acts_on(&subject, Some(2))
    }

    fn meets(fault: Fault, input: &Input) -> bool {
        acts(&mut Rule::new(1, fault).unwrap(), input)
    }

    #[test]
    fn operation_matches_by_name_and_in_its_later_forms() {
        let create = |op| {
            request(Request::Create(Create {
                op,
                ..Create::new("/a", b"", CreateMode::Persistent)
            }))
        };
        for op in [CreateOp::Create, CreateOp::Create2, CreateOp::Container] {
            assert!(meets(Fault::cut().on(OpCode::Create), &create(op)));
        }
        assert!(!meets(
            Fault::cut().on(OpCode::Create2),
            &create(CreateOp::Create)
        ));
        assert!(meets(
            Fault::cut().on(OpCode::Delete).on(OpCode::GetData),
            &get("/a")
        ));
        let hello = Input::Connect {
            conn: CONN,
            hello: ConnectRequest::new(1),
            is_read_only: false,
        };
        assert!(meets(Fault::cut().on(FaultOp::Connect), &hello));
        assert!(meets(Fault::cut(), &hello));
        assert!(!meets(Fault::cut().on(OpCode::Ping), &hello));
        // A handshake's reply has no field for an error.
        assert!(!meets(Fault::error(ErrorCode::NoAuth), &hello));
        let unknown = Input::UnknownOp {
            conn: CONN,
            xid: Xid(1),
        };
        assert!(meets(Fault::cut(), &unknown));
        assert!(!meets(Fault::cut().at("**"), &unknown));
    }

    #[test]
    fn any_path_of_a_multi_or_set_watches_matches() {
        let multi = request(Request::Multi(vec![
            MultiOp::Check {
                path: Some("/a".into()),
                version: 0,
            },
            MultiOp::Delete {
                path: Some("/b/c".into()),
                version: -1,
            },
        ]));
        assert!(meets(Fault::cut().at("/b/*"), &multi));
        assert!(!meets(Fault::cut().at("/c"), &multi));
        let watches = request(Request::SetWatches {
            relative_zxid: minikeeper_protocol::Zxid(0),
            data: vec![],
            exist: vec![],
            child: vec!["/w".into()],
        });
        assert!(meets(
            Fault::cut().on(OpCode::SetWatches).at("/w"),
            &watches
        ));
        // A ping has no path.
        assert!(!meets(Fault::cut().at("**"), &request(Request::Ping)));
    }

    #[test]
    fn fault_matches_only_its_session_or_address() {
        assert!(meets(Fault::silence(SessionId(7)), &get("/a")));
        assert!(!meets(Fault::silence(SessionId(8)), &get("/a")));
        assert!(meets(Fault::cut().of(FaultFor::Client(2)), &get("/a")));
        assert!(!meets(Fault::cut().of(FaultFor::Client(1)), &get("/a")));
        let localhost = std::net::IpAddr::from([127, 0, 0, 1]);
        assert!(meets(Fault::cut().of(localhost), &get("/a")));
        let socket = std::net::SocketAddr::from(([127, 0, 0, 1], 80));
        assert!(!meets(Fault::cut().of(socket), &get("/a")));
    }

    #[test]
    fn matches_are_skipped_then_counted() {
        let mut rule = Rule::new(1, Fault::cut().skip(2).times(2)).unwrap();
        let acted: Vec<_> = (0..6).map(|_| acts(&mut rule, &get("/a"))).collect();
        assert_eq!(acted, [false, false, true, true, false, false]);
        assert_eq!(rule.hits.seen().matches, 6);
    }

    #[test]
    fn same_seed_gives_the_same_choices() {
        let run = |seed| -> Vec<bool> {
            let mut rule = Rule::new(1, Fault::cut().with_probability(0.5, seed)).unwrap();
            (0..64).map(|_| acts(&mut rule, &get("/a"))).collect()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let mut certain = Rule::new(1, Fault::cut().with_probability(1.0, 9)).unwrap();
        assert!((0..64).all(|_| acts(&mut certain, &get("/a"))));
    }

    #[test]
    fn senseless_fault_is_refused() {
        let wrong = [
            Fault::cut().with_probability(-0.1, 0),
            Fault::cut().with_probability(f64::NAN, 0),
            Fault::cut().times(0),
            Fault::cut().at("no/slash"),
            Fault::cut().at("/q/"),
            Fault::cut().at("/q/").on(OpCode::GetData),
            Fault::hold_events().at("/q/"),
            Fault::cut().at("/q//r"),
            Fault::cut().at("/q/./r"),
            Fault::cut().at("/".repeat(2_000)),
            Fault::refuse().at("/a"),
            Fault::refuse().on(OpCode::Create),
            Fault::refuse().of(SessionId(1)),
            Fault::hold_events().on(OpCode::Create),
            Fault::error(ErrorCode::Other(0)),
            Fault::delay(std::time::Duration::ZERO),
            Fault::delay_reply(std::time::Duration::ZERO),
            Fault::delay_events(std::time::Duration::from_secs(1)).on(OpCode::Create),
            Fault::refuse().of(FaultFor::Client(1)),
            Fault::cut().of(FaultFor::Client(1)).on(FaultOp::Connect),
            Fault::error(ErrorCode::NoAuth).on(FaultOp::Connect),
            Fault {
                ops: vec![FaultOp::Any; 100],
                ..Fault::cut()
            },
        ];
        for fault in wrong {
            assert!(Rule::new(1, fault.clone()).is_err(), "{fault:?}");
        }
        assert!(Rule::new(1, Fault::refuse().on(FaultOp::Any)).is_ok());
        // The path of a sequential create may end with a slash: its name is just the number.
        assert!(Rule::new(1, Fault::cut().at("/q/").on(OpCode::Create)).is_ok());
        assert!(Rule::new(1, Fault::cut().at("/")).is_ok());
    }
}
