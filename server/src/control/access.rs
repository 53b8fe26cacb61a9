//! Checks whether a request may use control.
//!
//! Without a token only this machine may: a user who runs programs here can do worse. A web page in a
//! browser on this machine may not: its `Origin` gives it away, or, if its host name resolves to this
//! address (DNS rebinding), its `Host`. The page that the server itself serves may: its origin is the
//! host that it calls.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::{HeaderMap, StatusCode, Uri, header};

use crate::{config::ControlConfig, control::error::ControlError};

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
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ControlError> {
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
    if headers.contains_key(header::ORIGIN) && !is_own_page(headers) {
        return refused("control serves no web pages but its own; set a token to serve them");
    }
    let hosts = headers
        .get_all(header::HOST)
        .iter()
        .map(|host| host.to_str().ok());
    let asked_for = uri.authority().map(|authority| Some(authority.as_str()));
    let mut names = hosts.chain(asked_for).peekable();
    if names.peek().is_none() || !names.all(|name| name.is_some_and(is_harmless)) {
        return refused(
            "the Host of a request must be an address or localhost; set a token to use names",
        );
    }
    Ok(())
}

/// Returns whether a browser sends the request for a page of another site. Unlike `Origin`, browsers
/// send this header with every request, and no page can omit it.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| site != "none" && site != "same-origin")
}

/// Returns whether a host, with or without a port, can only be used by a client that knows the
/// address.
fn is_harmless(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.strip_prefix('[') {
        Some(inner) => {
            return inner.split_once(']').is_some_and(|(ip, port)| {
                ip.parse::<std::net::Ipv6Addr>().is_ok()
                    && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
            });
        }
        None => match host.split_once(':') {
            Some((name, port)) if is_port(port) => name,
            Some(_) => return false,
            None => host,
        },
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::Ipv4Addr>().is_ok()
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
    fn only_addresses_and_localhost_are_harmless() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:2181",
            "LocalHost",
            "[::1]",
            "[::1]:2181",
        ] {
            assert!(is_harmless(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "example.org",
            "example.org:80",
            "localhost.example.org",
            "127.0.0.1.nip.io",
            "[::1",
            "[::1]x",
            "[x]:1",
            "::1",
            "localhost:a",
        ] {
            assert!(!is_harmless(host), "{host}");
        }
    }

    /// CVE-2024-51504: ZooKeeper's admin server trusted the address in `X-Forwarded-For`, so that any
    /// client could claim an address of an access list. Here the connection's address counts.
    #[test]
    fn cve_2024_51504_forwarded_addresses_are_not_trusted() {
        let (config, wrong) = (ControlConfig::default(), WrongTokens::default());
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "localhost".parse().unwrap());
        let admit = |peer: &str, headers: &HeaderMap| {
            let uri = Uri::from_static("/v1/now");
            admit(&config, &wrong, peer.parse().unwrap(), &uri, headers)
        };
        assert_eq!(admit("127.0.0.1", &headers), Ok(()));
        for name in ["x-forwarded-for", "forwarded", "x-real-ip", "client-ip"] {
            let value = if name == "forwarded" {
                "for=127.0.0.1"
            } else {
                "127.0.0.1"
            };
            headers.insert(name, value.parse().unwrap());
            let refused = admit("192.0.2.1", &headers).unwrap_err();
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
