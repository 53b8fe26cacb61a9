//! The differential tester on itself: minikeeper against minikeeper, with the same settings and with others.
//!
//! These need no Java; `tests/differential/run` compares with ZooKeeper.

mod hunting;
mod table;
mod twice;

use minikeeper::Config;
use minikeeper_tests::{
    differential::{
        hunt::Plan,
        server::{Minikeeper, Server},
        socket::OnSocket,
    },
    scenario::{Quirks, Script},
};

/// Histories for the ordinary run of the tests; `MINIKEEPER_SEED` gives another start.
fn plan(seeds: u64) -> Plan {
    let seed = minikeeper_test_kit::random::seed_or(1);
    Plan {
        seed,
        seeds,
        connections: vec![1, 3, 8],
        steps: 150,
        enforces_quotas: false,
        budget: None,
    }
}

fn sane() -> Minikeeper {
    Minikeeper::new(|_: &mut Config| {})
}

/// Runs a written scenario over TCP.
fn run(text: &str, server: &mut dyn Server) -> Result<(), String> {
    let script = Script::parse("written.txt", text).map_err(|fault| fault.to_string())?;
    for case in &script.cases {
        let mut target = OnSocket::new(&mut *server, Quirks::default())?;
        let outcome = script.run_case(case, &mut target);
        outcome.map_err(|fault| fault.to_string())?;
    }
    Ok(())
}
