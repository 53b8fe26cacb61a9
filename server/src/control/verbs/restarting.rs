//! Restarts and data directories.

use std::sync::Arc;

use serde_json::json;

use crate::{
    control::{
        error::{ControlError, with_causes},
        own_port::go_down,
        parameter::{Parameter, ParameterKind},
        verb::{Call, Handler, Method, Verb},
    },
    universe::{RestartError, Universe},
    views::schema::{Field, FieldKind},
};
use minikeeper_engine::Keep;

const KEEP: Parameter = Parameter::required(
    "keep",
    ParameterKind::OneOf(&["everything", "data", "nothing"]),
    "What the server keeps: sessions and znodes, only znodes, or nothing",
)
.with_default("everything");

const DIR: Parameter = Parameter::required(
    "dir",
    ParameterKind::Directory,
    "A directory on the server's machine",
);

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "restart",
        method: Method::Post,
        docs: "Restart the server on the same port",
        parameters: &[KEEP],
        plain: None,
        answer: &[],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let keep = keep(call)?;
                let universe = call.universe.clone();
                let restarted = run_detached(async move { universe.restart(keep).await }).await?;
                restarted.map_err(|error| refused(&error))?;
                Ok(json!({}))
            })
        }),
    },
    Verb {
        name: "go_down",
        method: Method::Post,
        docs: "Stop listening and close every connection; returns the address of control meanwhile\n\n\
               Connections are refused until `come_up`. Returns HOST:PORT.",
        parameters: &[],
        plain: Some("control"),
        answer: &[Field::new("control", FieldKind::Text)],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let gone = go_down(Arc::clone(&call.controls), call.asked_at);
                let control = run_detached(gone).await??;
                Ok(json!({"control": control.to_string()}))
            })
        }),
    },
    Verb {
        name: "come_up",
        method: Method::Post,
        docs: "Listen again on the same port",
        parameters: &[KEEP],
        plain: None,
        answer: &[],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let up = call.universe.come_up(keep(call)?).await;
                up.map_err(|error| refused(&error))?;
                Ok(json!({}))
            })
        }),
    },
];

pub(super) const OF_UNIVERSES: &[Verb] = &[
    Verb {
        name: "import_data",
        method: Method::Post,
        docs: "Replace the state by that of a ZooKeeper data directory\n\n\
               Accepts directories of ZooKeeper 3.4 to 3.9 and only reads them.",
        parameters: &[DIR],
        plain: None,
        answer: &[],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let dir = directory(call)?;
                let imported = on_a_thread(call, |universe| universe.import_data(dir)).await?;
                imported.map_err(|error| ControlError::cannot_now(with_causes(&error)))?;
                Ok(json!({}))
            })
        }),
    },
    Verb {
        name: "export_data",
        method: Method::Post,
        docs: "Write a data directory that ZooKeeper can start from\n\n\
               ZooKeeper 3.8 and 3.9 start from it. Returns the zxid of the state.",
        parameters: &[DIR],
        plain: None,
        answer: &[Field::new("zxid", FieldKind::Hex)],
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let dir = directory(call)?;
                let zxid = on_a_thread(call, |universe| universe.export_data(dir)).await?;
                let zxid = zxid.map_err(|error| ControlError::cannot_now(with_causes(&error)))?;
                Ok(json!({"zxid": zxid.to_string()}))
            })
        }),
    },
];

/// Returns the directory to read or write.
fn directory(call: &Call) -> Result<String, ControlError> {
    if !call.universe.shared.config.control.allows_directories {
        return Err(ControlError::cannot_now(
            "control that is on by default reads and writes no directories; start the server with \
             --control",
        ));
    }
    call.arguments.text("dir").map(str::to_owned)
}

/// Runs work to its end even if the client disconnects: half a restart would leave the server down.
async fn run_detached<F>(work: F) -> Result<F::Output, ControlError>
where
    F: Future<Output: Send> + Send + 'static,
{
    let done = tokio::spawn(work).await;
    done.map_err(|_| ControlError::cannot_now("the server is being stopped"))
}

/// Runs work that reads or writes files on another thread, so that clients are served meanwhile.
async fn on_a_thread<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(Universe) -> T + Send + 'static,
) -> Result<T, ControlError> {
    let universe = call.universe.clone();
    let done = tokio::task::spawn_blocking(move || work(universe)).await;
    done.map_err(|_| ControlError::cannot_now("the server is being stopped"))
}

fn keep(call: &Call) -> Result<Keep, ControlError> {
    Ok(match call.arguments.text("keep")? {
        "everything" => Keep::Everything,
        "data" => Keep::Data,
        _ => Keep::Nothing,
    })
}

fn refused(error: &RestartError) -> ControlError {
    ControlError::cannot_now(with_causes(error))
}
