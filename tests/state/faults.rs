//! A lost reply loses nothing but the reply.

use std::sync::{Arc, atomic::AtomicU64};

use minikeeper::{Fault, OpCode};
use minikeeper_protocol::{Create, CreateMode, Request};

use crate::traffic::{Client, runtime, server};

/// A create whose reply is lost still creates the znode.
#[test]
fn request_whose_reply_is_lost_is_executed() {
    for over_tcp in [false, true] {
        check_lost_reply(over_tcp).unwrap();
    }
}

fn check_lost_reply(over_tcp: bool) -> Result<(), String> {
    runtime().block_on(async {
        let server = server().await;
        let lost = Fault::lose_reply().on(OpCode::Create).once();
        let lost = server.inject(lost).map_err(|error| error.to_string())?;
        let clock = Arc::new(AtomicU64::new(0));
        let mut client = Client::connect(&server, over_tcp, &clock)
            .await
            .map_err(|error| error.to_string())?;
        let create = Create::new("/a", b"", CreateMode::Persistent);
        if client.ask(Request::Create(create)).await.is_ok() {
            return Err("the reply was not lost".to_owned());
        }
        lost.hit().await.map_err(|error| error.to_string())?;
        match server.get("/a") {
            Some(_) => Ok(()),
            None => Err("the request was lost with its reply".to_owned()),
        }
    })
}
