//! What is logged of each request.

use minikeeper_engine::Input;
use minikeeper_protocol::Zxid;

/// One debug event a request, built only when somebody listens. Data is never logged.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "part of every turn, which has two callers"
)]
pub(crate) fn request(input: &Input, zxid: Zxid) {
    match input {
        Input::Request { conn, xid, request } => tracing::debug!(
            conn = conn.0,
            xid = xid.0,
            op = request.op().name(),
            path = request.path().map(tracing::field::display),
            %zxid,
            "request"
        ),
        Input::Connect { conn, hello } => tracing::debug!(
            conn = conn.0,
            session = %hello.session_id,
            timeout_ms = hello.timeout_ms,
            "handshake"
        ),
        other => tracing::debug!(?other, "input"),
    }
}
