//! Routes a request to its verb, by method, path and query, and serves it.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use hyper::{Method as HttpMethod, StatusCode, Uri};
use minikeeper_core::journal::record::RecordKind;

use crate::control::{
    controls::Controls,
    error::ControlError,
    openapi,
    parameter::Arguments,
    verb::{Answer, Call, Method, Verb},
    verbs,
};

/// Reading a longer body is left to a thread. Unit: bytes.
const SHORT_BODY_BYTES: usize = 16 << 10;

/// The target of a request.
pub(crate) enum Route {
    Description,
    Verb {
        verb: &'static Verb,
        /// The universe in the path, if there is one.
        universe: Option<String>,
    },
}

impl Route {
    /// Resolves a path.
    pub(crate) fn of(uri: &Uri) -> Result<Self, ControlError> {
        let below = uri.path().strip_prefix("/v1/").unwrap_or_default();
        let (universe, name) = match below.strip_prefix("universes/") {
            None => (None, below),
            Some(rest) => {
                let (universe, name) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(decoded(universe, false)?), name)
            }
        };
        if below == "openapi.json" {
            return Ok(Self::Description);
        }
        let verb = match universe {
            None => verbs::find(name),
            Some(_) => verbs::find_of_universes(name),
        };
        let verb = verb.ok_or_else(|| {
            if let (Some(universe), Some(verb)) = (&universe, verbs::find(name)) {
                return ControlError::bad_input(format!(
                    "{name} applies to the whole server, not to universe {universe:?} alone; call \
                     it without a universe, at /v1/{}",
                    verb.name
                ));
            }
            ControlError::not_found(format!(
                "nothing at {:?}; GET /v1/openapi.json lists all verbs",
                uri.path()
            ))
        })?;
        Ok(Self::Verb { verb, universe })
    }

    /// Returns the allowed methods.
    pub(crate) const fn methods(&self) -> &'static str {
        match self {
            Self::Description => "GET, HEAD",
            Self::Verb { verb, .. } => match verb.method {
                Method::Get => "GET, HEAD",
                Method::Post => "POST",
            },
        }
    }

    /// Returns whether a method is allowed.
    pub(crate) fn takes(&self, method: &HttpMethod) -> bool {
        self.methods().split(", ").any(|known| method == known)
    }

    /// Serves the request; `asked_at` is the server's address on the connection.
    pub(crate) async fn serve(
        &self,
        controls: &Arc<Controls>,
        asked_at: SocketAddr,
        query: Option<&str>,
        body: Bytes,
    ) -> Result<Answer, ControlError> {
        let Self::Verb { verb, universe } = self else {
            return Ok(Answer::Whole(openapi::description().to_string()));
        };
        let verb: &'static Verb = verb;
        let arguments = match verb.method {
            Method::Get => Arguments::from_query(query.unwrap_or_default(), verb.parameters)?,
            Method::Post if body.len() > SHORT_BODY_BYTES => {
                let read = move || Arguments::from_body(&body, verb.parameters);
                controls.on_thread(read).await??
            }
            Method::Post => Arguments::from_body(&body, verb.parameters)?,
        };
        let call = Call {
            universe: controls.universe(universe.as_deref())?,
            controls: Arc::clone(controls),
            asked_at,
            arguments,
        };
        let is_over = call.universe.shared.turns.is_broken();
        if is_over {
            let sentence = "the server has stopped after an internal error, or because it could not log a change";
            return Err(ControlError::new(StatusCode::CONFLICT, sentence));
        }
        if matches!(verb.method, Method::Post) {
            let turns = &call.universe.shared.turns;
            turns.note(RecordKind::Verb, None, || called(verb, &call.arguments));
        }
        let answer = verb.handler.serve(call).await;
        if matches!(verb.method, Method::Post) {
            // With one worker, the connections that the verb has woken write their events before the
            // answer is written: they are in the worker's queue, and this task goes to its end. With
            // several workers the order is not guaranteed.
            tokio::task::yield_now().await;
        }
        answer
    }
}

/// Returns a call for the journal: the verb with its arguments, except those that contain data.
fn called(verb: &Verb, arguments: &Arguments) -> String {
    let mut text = verb.name.to_owned();
    for parameter in verb.parameters {
        let alternatives = parameter.kind.alternatives();
        let own = alternatives.is_empty().then_some(parameter.name);
        for name in alternatives.iter().map(|field| field.name).chain(own) {
            let Some(value) = arguments.given(name) else {
                continue;
            };
            if parameter.kind.is_data() {
                text += &format!(" {name}=...");
            } else {
                text += &format!(" {name}={value}");
            }
        }
    }
    text
}

/// Returns the decoded names and values of a query.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, ControlError> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name, true)?, decoded(value, true)?))
        })
        .collect()
}

/// Decodes percent-encoding; in queries a plus means a space.
pub(crate) fn decoded(text: &str, plus_is_space: bool) -> Result<String, ControlError> {
    let wrong = || ControlError::bad_input(format!("{text:?} is not percent-encoded UTF-8"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'%' => {
                let [high, low, behind @ ..] = rest else {
                    return Err(wrong());
                };
                bytes.push(digit(*high).ok_or_else(wrong)? << 4 | digit(*low).ok_or_else(wrong)?);
                rest = behind;
            }
            b'+' if plus_is_space => bytes.push(b' '),
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let pairs = pairs("path=%2Fa+b%C3%A4&&x&y=1=2").unwrap();
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("path", "/a bä"), ("x", ""), ("y", "1=2")]);
    }

    #[test]
    fn malformed_percent_encoding_is_refused() {
        for text in ["a=%", "a=%4", "a=%zz", "a=%ff", "%C3=b"] {
            assert!(pairs(text).is_err(), "{text}");
        }
        assert_eq!(decoded("a+b", false).unwrap(), "a+b");
    }
}
