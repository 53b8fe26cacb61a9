//! Who may use control.
//!
//! Without a token only this machine: whoever runs programs here can do worse. A web page in a
//! browser on this machine is not that: it is kept out by its `Origin`, and, where it has made its
//! own name lead to this address, by the `Host` it asks for.

use std::net::IpAddr;

use hyper::{HeaderMap, StatusCode, Uri, header};

use crate::{config::ControlConfig, control::fault::Fault};

/// Lets a request in.
///
/// # Errors
/// Why not.
pub(crate) fn admit(
    config: &ControlConfig,
    peer: IpAddr,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Fault> {
    let refused = |sentence: &str| Err(Fault::new(StatusCode::FORBIDDEN, sentence));
    if let Some(token) = &config.token {
        return if shows(headers, token) {
            Ok(())
        } else {
            let sentence = "this server wants its token, as Authorization: Bearer TOKEN";
            Err(Fault::new(StatusCode::UNAUTHORIZED, sentence))
        };
    }
    if !peer.to_canonical().is_loopback() {
        return refused("only this machine is served; set a token to serve others");
    }
    if headers.contains_key(header::ORIGIN) {
        return refused("web pages are not served; set a token to serve them");
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

/// Whether a host, port or not, can only be meant by somebody who knows the address.
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

/// Whether the headers show this token.
fn shows(headers: &HeaderMap, token: &str) -> bool {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(shown), None) = (shown.next(), shown.next()) else {
        return false;
    };
    let Some((scheme, shown)) = shown.as_bytes().split_at_checked("Bearer ".len()) else {
        return false;
    };
    scheme.eq_ignore_ascii_case(b"Bearer ") && is_same(shown.trim_ascii(), token.as_bytes())
}

/// Whether two secrets are the same; takes as long whichever byte differs.
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

    #[test]
    fn token_is_the_whole_token() {
        let headers = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            headers
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
