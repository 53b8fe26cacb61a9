//! ZooKeeper's AdminServer: `/commands`, `/commands/NAME` and `/metrics`.
//!
//! The caller has already checked the access. Every command is a GET, as in ZooKeeper.

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Response, StatusCode, Uri,
    header::{self, HeaderValue},
};
use minikeeper_core::state::UniverseState;
use serde_json::Value;

use crate::{
    admin::{
        commands::{self, Access, CommandAnswer},
        prometheus,
    },
    control::routing,
};

/// What a path below AdminServer's addresses names.
#[derive(Debug)]
pub(crate) enum AdminPage<'a> {
    List,
    /// A command, still percent-encoded.
    Command(&'a str),
    Metrics,
}

impl<'a> AdminPage<'a> {
    /// Resolves a path; `None` if it is not AdminServer's.
    pub(crate) fn at(path: &'a str) -> Option<Self> {
        match path {
            "/metrics" => Some(Self::Metrics),
            "/commands" | "/commands/" => Some(Self::List),
            _ => path.strip_prefix("/commands/").map(Self::Command),
        }
    }

    /// Answers a request to a server of the ensemble.
    pub(crate) fn answer(
        &self,
        shared: &UniverseState,
        server: u8,
        (method, uri, headers): (&Method, &Uri, &HeaderMap),
    ) -> Response<Bytes> {
        match self {
            Self::Command(name) => json(command(name, shared, server, (method, uri, headers))),
            _ if !is_read(method) => json(refused_method(uri.path(), "GET, HEAD")),
            Self::Metrics => response(
                StatusCode::OK,
                prometheus::CONTENT_TYPE,
                prometheus::text(shared),
            ),
            Self::List => {
                let links = commands::names()
                    .map(|name| format!("<a href=\"/commands/{name}\">{name}</a>\n<br/>\n"));
                response(StatusCode::OK, "text/html; charset=utf-8", links.collect())
            }
        }
    }
}

fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

fn command(
    name: &str,
    shared: &UniverseState,
    server: u8,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
) -> CommandAnswer {
    let decoded = routing::decoded(name, false).and_then(|name| {
        let parameters = routing::pairs(uri.query().unwrap_or_default())?;
        Ok((name, parameters))
    });
    let (name, parameters) = match decoded {
        Ok(decoded) => decoded,
        Err(error) => return CommandAnswer::error(error.status, name, &error.sentence),
    };
    let Some(command) = commands::find(&name) else {
        return CommandAnswer::unknown(&name);
    };
    match command.access {
        Access::Read if !is_read(method) => refused_method(command.name(), "GET, HEAD"),
        Access::Change if method != Method::GET => refused_method(command.name(), "GET"),
        Access::Credentials if ![Method::GET, Method::POST].contains(method) => {
            refused_method(command.name(), "GET, POST")
        }
        _ => command.run(
            shared,
            &name,
            &parameters,
            server,
            headers.contains_key(header::AUTHORIZATION),
        ),
    }
}

fn refused_method(name: &str, allowed: &'static str) -> CommandAnswer {
    let error = format!("{name} takes {allowed}");
    CommandAnswer::error(StatusCode::METHOD_NOT_ALLOWED, name, &error)
}

fn json(CommandAnswer { status, body }: CommandAnswer) -> Response<Bytes> {
    // ZooKeeper's is indented too: people read it.
    let text = format!("{:#}\n", Value::Object(body));
    response(status, "application/json", text)
}

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
