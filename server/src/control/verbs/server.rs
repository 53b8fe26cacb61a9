//! The whole server.

use serde_json::json;

use crate::control::{
    error::{ControlError, with_causes},
    verb::{Call, Handler, Method, Outcome, Verb},
};

pub(super) const VERBS: &[Verb] = &[Verb {
    name: "save",
    method: Method::Post,
    docs: "Save the state to the data directory now",
    parameters: &[],
    plain: None,
    answer: &[],
    handler: Handler::Waits(|call| Box::pin(save(call))),
}];

async fn save(call: &Call) -> Outcome {
    let shared = &call.universe.shared;
    if shared.config.data_dir.is_none() {
        return Err(ControlError::cannot_now(
            "there is no data directory; start the server with --data-dir",
        ));
    }
    let saved = shared.save().await;
    saved
        .map_err(|error| ControlError::cannot_now(format!("not saved: {}", with_causes(&error))))?;
    Ok(json!({}))
}
