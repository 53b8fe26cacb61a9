//! From a method and a path to an answer.

use std::{net::SocketAddr, sync::Arc};

use hyper::{Method as HttpMethod, StatusCode, Uri};
use serde_json::Value;

use crate::control::{
    arguments::Arguments,
    controls::Controls,
    fault::Fault,
    openapi, query,
    verb::{Call, Method, Verb},
    verbs,
};

/// What a request is for.
pub(crate) enum Route {
    Description,
    Verb {
        verb: &'static Verb,
        /// The universe it names, if it names one.
        universe: Option<String>,
    },
}

impl Route {
    /// What the path leads to.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Fault> {
        let below = uri.path().strip_prefix("/v1/").unwrap_or_default();
        let (universe, name) = match below.strip_prefix("universes/") {
            None => (None, below),
            Some(rest) => {
                let (universe, name) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(query::decoded(universe, false)?), name)
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
                return Fault::bad_input(format!(
                    "{name} is about the whole server, not about universe {universe:?} alone: ask \
                     the server itself, without a universe, at /v1/{}",
                    verb.name
                ));
            }
            Fault::not_found(format!(
                "nothing at {:?}; GET /v1/openapi.json tells what there is",
                uri.path()
            ))
        })?;
        Ok(Self::Verb { verb, universe })
    }

    /// The methods it may be used with.
    pub(crate) const fn methods(&self) -> &'static str {
        match self {
            Self::Description => "GET, HEAD",
            Self::Verb { verb, .. } => match verb.method {
                Method::Get => "GET, HEAD",
                Method::Post => "POST",
            },
        }
    }

    /// Whether it may be used with this one.
    pub(crate) fn takes(&self, method: &HttpMethod) -> bool {
        self.methods().split(", ").any(|known| method == known)
    }

    /// Does what is asked for, at this address.
    pub(crate) async fn serve(
        &self,
        controls: &Arc<Controls>,
        asked_at: SocketAddr,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Value, Fault> {
        let Self::Verb { verb, universe } = self else {
            return Ok(openapi::description());
        };
        let arguments = match verb.method {
            Method::Get => Arguments::from_query(query.unwrap_or_default(), verb.parameters)?,
            Method::Post => Arguments::from_body(body, verb.parameters)?,
        };
        let call = Call {
            universe: controls.universe(universe.as_deref())?,
            controls: Arc::clone(controls),
            asked_at,
            arguments,
        };
        let is_over = call.universe.shared.turns.is_broken();
        if is_over {
            let sentence =
                "the server has stopped: over a bug in it, or since a change cannot be kept";
            return Err(Fault::new(StatusCode::CONFLICT, sentence));
        }
        let answer = verb.handler.serve(&call).await;
        if matches!(verb.method, Method::Post) {
            // Connections that the verb has woken write their events before the answer is written:
            // they stand in the queue of the only worker, and this goes behind them. With several
            // workers it may not.
            tokio::task::yield_now().await;
        }
        answer
    }
}
