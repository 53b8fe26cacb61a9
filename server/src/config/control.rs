//! Settings of control over HTTP.

use std::net::SocketAddr;

use minikeeper_engine::Secret;

/// Whether and for whom there is control over HTTP.
///
/// A request is served only from this machine, and only if it names the server by an address or
/// as `localhost` and comes from no web page; with a token set, only if it shows the token, and
/// then from anywhere.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControlConfig {
    /// Whether HTTP requests on the clients' port are answered. Default: no, their bytes are what
    /// they always were: the start of a frame that is too long.
    pub is_enabled: bool,
    /// An address of control's own, where HTTP alone is answered, also while the server is
    /// [down](crate::Universe::go_down); the clients' port may answer too. Port 0 takes a free one.
    /// Default: none. A server that a request takes down opens one then, at the address the request
    /// came to, until it comes up.
    pub listen: Option<SocketAddr>,
    /// What a request has to show as `Authorization: Bearer TOKEN`: printable ASCII without blanks,
    /// at least one character. No minimum beyond that, because at most
    /// [`WRONG_TOKENS_MAX`](Self::WRONG_TOKENS_MAX) can be tried in a second; 32 random characters
    /// are plenty. Default: nothing, only this machine is served.
    pub token: Option<Secret>,
    /// The largest body accepted. Unit: bytes. Default: 64 MiB.
    pub body_bytes_max: usize,
}

impl ControlConfig {
    /// How many wrong tokens are looked at in a second, of all clients together. Beyond that every
    /// request with a token is answered with status 429 until the second is over, so that nobody
    /// finds a token by trying.
    pub const WRONG_TOKENS_MAX: usize = 16;
}

impl Default for ControlConfig {
    fn default() -> Self {
        Self {
            is_enabled: false,
            listen: None,
            token: None,
            body_bytes_max: 64 << 20,
        }
    }
}
