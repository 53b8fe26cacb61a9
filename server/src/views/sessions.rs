//! Sessions as JSON.

use minikeeper_core::state::session_info::SessionInfo;
use minikeeper_engine::WatchKind;
use serde_json::{Value, json};

use crate::views::schema::{Field, FieldKind, Part};

pub(crate) const SESSION: Part = Part::new(
    "Session",
    "A session as the server sees it",
    &[
        Field::new("id", FieldKind::Session).help("Its id, as its client has it"),
        Field::new("timeout_ms", FieldKind::DurationMs).help("Its negotiated timeout"),
        Field::new("timeout_left_ms", FieldKind::DurationMs)
            .help("The time until it expires, by the universe's clock"),
        Field::optional("address", FieldKind::Text)
            .help("HOST:PORT of its client; null without a TCP connection"),
        Field::new("is_connected", FieldKind::Flag).help("Whether it has a connection"),
        Field::new("is_silenced", FieldKind::Flag),
        Field::new("identities", FieldKind::Texts)
            .help("The identities of its connection as `scheme:id`, without passwords"),
        Field::new("ephemerals", FieldKind::Texts).help("The paths of its ephemerals, oldest first"),
        Field::new("watches", FieldKind::Parts(&WATCH)).help("Its watches, by path"),
        Field::optional("last_operation", FieldKind::Part(&LAST_OPERATION))
            .help("Its last request; null without one"),
        Field::new("is_unbound", FieldKind::Flag).help(
            "Whether its universe is unknown, because its client has not sent a request with a path yet",
        ),
    ],
);

const WATCH: Part = Part::new(
    "Watch",
    "A watch of a session",
    &[
        Field::new("path", FieldKind::Text).help("The watched path"),
        Field::new(
            "kind",
            FieldKind::OneOf(&[
                WatchKind::Data.name(),
                WatchKind::Children.name(),
                WatchKind::Persistent.name(),
                WatchKind::PersistentRecursive.name(),
            ]),
        ),
    ],
);

const LAST_OPERATION: Part = Part::new(
    "LastOperation",
    "The last request of a session",
    &[
        Field::new("name", FieldKind::Text).help("Its name in the protocol, such as `getData`"),
        Field::new("at_ms", FieldKind::DurationMs)
            .help("The time by the universe's clock, since the start"),
    ],
);

pub(crate) fn session(session: &SessionInfo) -> Value {
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let watches: Vec<_> = session
        .watches
        .iter()
        .map(|watch| json!({"path": watch.path, "kind": watch.kind.name()}))
        .collect();
    let last = session.last_operation.map(|last| {
        json!({
            "name": last.name,
            "at_ms": ms(last.at),
        })
    });
    json!({
        "id": session.id.to_string(),
        "timeout_ms": ms(session.timeout),
        "timeout_left_ms": ms(session.timeout_left),
        "is_connected": session.is_connected,
        "is_unbound": session.is_unbound,
        "is_silenced": session.is_silenced,
        "address": session.address.map(|address| address.to_string()),
        "identities": session.identities,
        "ephemerals": session.ephemerals,
        "watches": watches,
        "last_operation": last,
    })
}
