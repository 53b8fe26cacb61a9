//! Recordings.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use minikeeper_core::recording::RecordingError;
use serde_json::json;

use crate::{
    control::{
        error::ControlError,
        parameter::{Parameter, ParameterKind},
        verb::{Handler, Method, Verb},
    },
    views::schema::{Field, FieldKind},
};

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "start_recording",
        method: Method::Post,
        docs: "Record what clients send, and what follows, for `minikeeper replay`\n\n\
               The recording is in memory and ends at its limit. If there are sessions, this closes \
               their connections, as a restart that keeps everything does: clients connect again, and \
               the recording has their watches.",
        parameters: &[Parameter::required(
            "bytes_max",
            ParameterKind::Count(u64::MAX),
            "The size limit of the recording",
        )
        .with_default("67108864")],
        plain: None,
        answer: &[],
        handler: Handler::AtOnce(|call| {
            let bytes_max = usize::try_from(call.arguments.count("bytes_max")?);
            let started = call
                .universe
                .start_recording(bytes_max.unwrap_or(usize::MAX));
            started.map_err(refused)?;
            Ok(json!({}))
        }),
    },
    Verb {
        name: "stop_recording",
        method: Method::Post,
        docs: "Stop the recording and return it\n\n\
               `minikeeper ctl stop-recording | base64 -d >FILE` writes the file for `minikeeper \
               replay FILE`. It contains the data of znodes, and what clients sent to authenticate.",
        parameters: &[],
        plain: Some("base64"),
        answer: &[
            Field::new("base64", FieldKind::Text).help("The recording, in Base64"),
            Field::new("bytes", FieldKind::Count).help("Its length"),
            Field::new("ended", FieldKind::Text)
                .help("Why it ended early, such as that the limit was reached; else empty"),
        ],
        handler: Handler::AtOnce(|call| {
            let recording = call.universe.stop_recording().map_err(refused)?;
            let bytes = recording.to_bytes();
            Ok(json!({
                "base64": STANDARD.encode(&bytes),
                "bytes": bytes.len(),
                "ended": recording.ended().unwrap_or_default(),
            }))
        }),
    },
];

fn refused(error: RecordingError) -> ControlError {
    ControlError::cannot_now(error.to_string())
}
