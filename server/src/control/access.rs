//! Checks whether a request may use control.
//!
//! Without a token only this machine may: a user who runs programs here can do worse. A web page in a
//! browser on this machine may not:
//!
//! - Its `Origin` gives it away. Browsers omit that from a GET for an image, a script, a link or a form.
//! - `Sec-Fetch-Site` gives these away. Browsers send it to hosts that they take for this machine
//!   (`localhost`, 127.0.0.0/8, `[::1]`), and omit it for other names of this machine, such as `0.0.0.0`.
//! - So the `Host` must be one of those. Any other is an alias, or a name that a page resolves to this
//!   machine (DNS rebinding).
//!
//! The page that the server itself serves may: its origin is the host that it calls. A link of another
//! site may open it, because it is the same file for all.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::{HeaderMap, Method, StatusCode, header, http::request};
use minikeeper_core::config::ControlConfig;

use crate::control::error::ControlError;

/// The period after which the count of wrong tokens restarts.
const WRONG_TOKENS_PERIOD: Duration = Duration::from_secs(1);

/// The number of wrong tokens in this second, from all clients together.
///
/// A limit instead of a delay: delayed requests would need a bound too, and an attacker does not wait
/// for replies but opens the next connection.
#[derive(Debug, Default)]
pub(crate) struct WrongTokens(Arc<AtomicUsize>);

impl WrongTokens {
    fn is_exhausted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ControlConfig::WRONG_TOKENS_MAX
    }

    /// Counts a wrong token. The first one of a second starts the task that resets the count, so there
    /// is at most one such task.
    fn count(&self, peer: IpAddr) {
        match self.0.fetch_add(1, Ordering::Relaxed) + 1 {
            1 => {
                tracing::warn!(%peer, "wrong control token");
                let count = Arc::clone(&self.0);
                tokio::spawn(async move {
                    tokio::time::sleep(WRONG_TOKENS_PERIOD).await;
                    count.store(0, Ordering::Relaxed);
                });
            }
            ControlConfig::WRONG_TOKENS_MAX => tracing::warn!(
                %peer,
                max = ControlConfig::WRONG_TOKENS_MAX,
                "too many wrong control tokens; refuses all tokens for the rest of this second"
            ),
            _ => {}
        }
    }
}

/// Admits a request. Must be called on a runtime.
///
/// # Errors
/// When the request may not use control.
pub(crate) fn admit(
    config: &ControlConfig,
    wrong_tokens: &WrongTokens,
    peer: IpAddr,
    request: &request::Parts,
) -> Result<(), ControlError> {
    let headers = &request.headers;
    let refused = |sentence: &str| Err(ControlError::new(StatusCode::FORBIDDEN, sentence));
    if let Some(token) = &config.token {
        if let Some(shown) = shown(headers) {
            // Refuses the right token too: otherwise the answer would reveal it.
            if wrong_tokens.is_exhausted() {
                let sentence = "too many wrong tokens; try again in a second";
                return Err(ControlError::new(StatusCode::TOO_MANY_REQUESTS, sentence));
            }
            if is_same(shown, token.as_bytes()) {
                return Ok(());
            }
            wrong_tokens.count(peer);
        }
        let sentence = "missing or wrong token; send Authorization: Bearer TOKEN";
        return Err(ControlError::new(StatusCode::UNAUTHORIZED, sentence));
    }
    if !peer.to_canonical().is_loopback() {
        return refused("control serves only this machine; set a token to serve others");
    }
    let is_of_other_site = (headers.contains_key(header::ORIGIN) && !is_own_page(headers))
        || (is_cross_site(headers) && !opens_page(request));
    if is_of_other_site {
        return refused("control serves no web pages but its own; set a token to serve them");
    }
    let hosts = headers
        .get_all(header::HOST)
        .iter()
        .map(|host| host.to_str().ok());
    let authority = request.uri.authority();
    let asked_for = authority.map(|authority| Some(authority.as_str()));
    let mut names = hosts.chain(asked_for).peekable();
    if names.peek().is_none() || !names.all(|name| name.is_some_and(is_this_machine)) {
        return refused(
            "the Host of a request must be localhost or a loopback address; set a token to use others",
        );
    }
    Ok(())
}

/// Returns whether a browser sends the request for a page of another site, which includes those of
/// other ports. Unlike `Origin`, browsers send this header with every request, and no page can omit it.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| site != "none" && site != "same-origin")
}

/// Returns whether a browser sends the request to show the page in a tab, as when a user follows a
/// link: not in a frame, and not for a script of another site.
fn opens_page(request: &request::Parts) -> bool {
    let is = |name, wanted| {
        let mut values = request.headers.get_all(name).iter();
        values.next().is_some_and(|value| value == wanted) && values.next().is_none()
    };
    request.method == Method::GET
        && request.uri.path() == "/"
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

/// Returns whether a host, with or without a port, is one that browsers take for this machine.
fn is_this_machine(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.strip_prefix('[') {
        Some(inner) => {
            return inner.split_once(']').is_some_and(|(ip, port)| {
                ip.parse() == Ok(Ipv6Addr::LOCALHOST)
                    && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
            });
        }
        None => match host.split_once(':') {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return false,
            None => host,
        },
    };
    let is_loopback = |ip: Ipv4Addr| ip.is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

/// Returns whether a browser sends the request for the server's own page. Browsers send `Origin` with
/// each POST, those of the same origin too; no page can forge it, or `Host`.
fn is_own_page(headers: &HeaderMap) -> bool {
    let only = |name| {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        values.next().is_none().then_some(value)
    };
    let (Some(origin), Some(host)) = (only(header::ORIGIN), only(header::HOST)) else {
        return false;
    };
    let origin = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    origin == Some(host)
}

/// Returns the token in the headers.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(shown), None) = (shown.next(), shown.next()) else {
        return None;
    };
    let (scheme, shown) = shown.as_bytes().split_at_checked("Bearer ".len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ");
    is_bearer.then(|| shown.trim_ascii())
}

/// Compares two secrets in a time that does not depend on which byte differs.
fn is_same(shown: &[u8], secret: &[u8]) -> bool {
    let differences = secret
        .iter()
        .zip(shown.iter().chain(std::iter::repeat(&0)))
        .fold(0, |differences, (a, b)| differences | (a ^ b));
    std::hint::black_box(differences) == 0 && shown.len() == secret.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_browsers_take_for_this_machine_are_admitted() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.2",
            "localhost:2181",
            "LocalHost",
            "[::1]",
            "[::1]:2181",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "example.org",
            "example.org:80",
            "localhost.example.org",
            "127.0.0.1.nip.io",
            // Other names of this machine, to which browsers send no `Sec-Fetch-Site`.
            "0.0.0.0:2181",
            "[::]:2181",
            "[::ffff:127.0.0.1]:2181",
            "[::ffff:7f00:1]",
            "192.0.2.1:2181",
            "127.1",
            "2130706433",
            "[::1",
            "[::1]x",
            "[x]:1",
            "::1",
            "localhost:a",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    /// CVE-2024-51504: ZooKeeper's admin server trusted the address in `X-Forwarded-For`, so that any
    /// client could claim an address of an access list. Here the connection's address counts.
    #[test]
    fn cve_2024_51504_forwarded_addresses_are_not_trusted() {
        let (config, wrong) = (ControlConfig::default(), WrongTokens::default());
        let request = hyper::Request::get("/v1/now").header(header::HOST, "localhost");
        let (mut request, ()) = request.body(()).unwrap().into_parts();
        let admit = |peer: &str, request: &request::Parts| {
            admit(&config, &wrong, peer.parse().unwrap(), request)
        };
        assert_eq!(admit("127.0.0.1", &request), Ok(()));
        for name in ["x-forwarded-for", "forwarded", "x-real-ip", "client-ip"] {
            let value = if name == "forwarded" {
                "for=127.0.0.1"
            } else {
                "127.0.0.1"
            };
            request.headers.insert(name, value.parse().unwrap());
            let refused = admit("192.0.2.1", &request).unwrap_err();
            assert_eq!(refused.status, StatusCode::FORBIDDEN, "{name}");
        }
    }

    #[test]
    fn only_the_exact_token_matches() {
        let headers = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            headers
        };
        let shows = |headers: &HeaderMap, token: &str| {
            shown(headers).is_some_and(|shown| is_same(shown, token.as_bytes()))
        };
        assert!(shows(&headers("Bearer secret"), "secret"));
        assert!(shows(&headers("bearer  secret"), "secret"));
        for value in [
            "Bearer secre",
            "Bearer secrets",
            "Bearer ",
            "Bearer",
            "secret",
            "Basic secret",
            "Bearer secret\u{9}x",
        ] {
            assert!(!shows(&headers(value), "secret"), "{value}");
        }
        assert!(!shows(&HeaderMap::new(), "secret"));
    }
}
