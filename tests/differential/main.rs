//! Tests the differential tester: minikeeper against minikeeper, with equal and with different settings.
//!
//! These need no Java; `tests/differential/run` compares with ZooKeeper.

mod hunting;
mod recordings;
mod table;
mod twice;

use minikeeper::Config;
use minikeeper_tests::{
    differential::{
        hunt::Plan,
        server::{Minikeeper, Server},
        socket::OnSocket,
    },
    scenario::{KnownDifferences, Script},
};

/// The histories of a usual test run. `MINIKEEPER_SEED` sets the first seed.
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

fn reference() -> Minikeeper {
    Minikeeper::new(|_: &mut Config| {})
}

/// Runs the text of a scenario over TCP.
fn run(text: &str, server: &mut dyn Server) -> Result<(), String> {
    let script = Script::parse("written.txt", text).map_err(|fault| fault.to_string())?;
    for case in &script.cases {
        let mut target = OnSocket::new(&mut *server, KnownDifferences::default())?;
        let outcome = script.run_case(case, &mut target);
        outcome.map_err(|fault| fault.to_string())?;
    }
    Ok(())
}
