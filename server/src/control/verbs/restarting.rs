//! Down, up, and data directories.

use serde_json::json;

use crate::{
    control::{
        fault::Fault,
        parameter::{Kind, Parameter},
        schema,
        verb::{Call, Handler, Method, Verb},
    },
    universe::{RestartError, Universe},
};
use minikeeper_engine::Keep;

const KEEP: Parameter = Parameter::required(
    "keep",
    Kind::OneOf(&["everything", "data", "nothing"]),
    "What is still there afterwards: sessions and znodes, znodes alone, or nothing",
)
.with_default("everything");

const DIR: Parameter =
    Parameter::required("dir", Kind::Text, "A directory of the server's machine");

pub(super) const VERBS: &[Verb] = &[
    Verb {
        name: "restart",
        method: Method::Post,
        summary: "Go down and come up again on the same port",
        parameters: &[KEEP],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let keep = keep(call)?;
                let restart = |universe: Universe| async move { universe.restart(keep).await };
                let restarted = to_the_end(call, restart).await?;
                restarted.map_err(|error| refused(&error))?;
                Ok(json!({}))
            })
        }),
    },
    Verb {
        name: "go_down",
        method: Method::Post,
        summary: "Cut every client and refuse all connections; only this one stays, to come up over",
        parameters: &[],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                call.universe.go_down().await;
                Ok(json!({}))
            })
        }),
    },
    Verb {
        name: "come_up",
        method: Method::Post,
        summary: "Listen again on the same port",
        parameters: &[KEEP],
        plain: None,
        answer: schema::nothing,
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
        summary: "Go on with the znodes of a ZooKeeper data directory",
        parameters: &[DIR],
        plain: None,
        answer: schema::nothing,
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let dir = call.arguments.text("dir")?.to_owned();
                let imported = on_a_thread(call, |universe| universe.import_data(dir)).await?;
                imported.map_err(|error| Fault::cannot_now(with_causes(&error)))?;
                Ok(json!({}))
            })
        }),
    },
    Verb {
        name: "export_data",
        method: Method::Post,
        summary: "Write a data directory that a ZooKeeper starts from",
        parameters: &[DIR],
        plain: None,
        answer: || schema::object(&[("zxid", schema::hex())]),
        handler: Handler::Waits(|call| {
            Box::pin(async move {
                let dir = call.arguments.text("dir")?.to_owned();
                let zxid = on_a_thread(call, |universe| universe.export_data(dir)).await?;
                let zxid = zxid.map_err(|error| Fault::cannot_now(with_causes(&error)))?;
                Ok(json!({"zxid": zxid.to_string()}))
            })
        }),
    },
];

/// Even if whoever asked for it goes away: half a restart would be a server that stays down.
async fn to_the_end<F>(call: &Call, work: impl FnOnce(Universe) -> F) -> Result<F::Output, Fault>
where
    F: Future<Output: Send> + Send + 'static,
{
    let done = tokio::spawn(work(call.universe.clone())).await;
    done.map_err(|_| Fault::cannot_now("the server is being stopped"))
}

/// Files are read and written where that keeps nobody from being served.
async fn on_a_thread<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(Universe) -> T + Send + 'static,
) -> Result<T, Fault> {
    let universe = call.universe.clone();
    let done = tokio::task::spawn_blocking(move || work(universe)).await;
    done.map_err(|_| Fault::cannot_now("the server is being stopped"))
}

fn keep(call: &Call) -> Result<Keep, Fault> {
    Ok(match call.arguments.text("keep")? {
        "everything" => Keep::Everything,
        "data" => Keep::Data,
        _ => Keep::Nothing,
    })
}

fn refused(error: &RestartError) -> Fault {
    Fault::cannot_now(with_causes(error))
}

/// An error and what is behind it, in one sentence.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
