//! Sessions as JSON.

use minikeeper_core::state::session_info::SessionInfo;
use serde_json::{Value, json};

pub(crate) fn session(session: &SessionInfo) -> Value {
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let watches: Vec<_> = session
        .watches
        .iter()
        .map(|watch| json!({"path": watch.path, "kind": watch.kind.to_string()}))
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
