//! Two servers with equal settings: no difference is found, and written histories pass.

use minikeeper_tests::differential::{
    generate::Generator,
    history,
    hunt::hunt,
    known::{Avoid, KnownDifferences},
    report, scenarios,
    server::Server,
    shrink::shrink,
};

use crate::{plan, reference, run};

#[test]
fn same_server_twice_shows_no_difference() {
    let (mut left, mut right) = (reference(), reference());
    let plan = plan(4);
    let hunted = hunt(
        &mut left,
        &mut right,
        KnownDifferences::default(),
        Avoid::default(),
        &plan,
    );
    let hunted = hunted.unwrap();
    if let Some(found) = hunted.found {
        let text = found
            .scenario(&mut left, KnownDifferences::default())
            .unwrap();
        panic!(
            "MINIKEEPER_SEED={}: {}\n{text}",
            plan.seed, found.difference
        );
    }
    assert!(hunted.operations > 1_500, "{hunted:?}");
}

/// Goal: the scenario language can express every reply. Method: random histories, written with the
/// replies of one server, pass on another one.
#[test]
fn written_histories_pass_on_the_same_server() {
    let (mut left, mut right) = (reference(), reference());
    for seed in 1..=6 {
        let mut generator = Generator::new(seed, 3, 80, Avoid::default());
        let mut steps = Vec::new();
        let servers: [&mut dyn Server; 2] = [&mut left, &mut right];
        let played = history::play(servers, KnownDifferences::default(), |side| {
            let step = generator.next(side);
            steps.extend(step.clone());
            step
        });
        assert!(played.unwrap().difference.is_none());
        let text =
            report::scenario(&mut left, KnownDifferences::default(), "all of it", &steps).unwrap();
        run(&text, &mut right).unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{text}"));
    }
}

#[test]
fn scenario_files_pass_over_sockets() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let mut server = reference();
    for script in scenarios::read(folder.as_ref()).unwrap() {
        for case in &script.cases {
            let target = minikeeper_tests::differential::socket::OnSocket::new(
                &mut server,
                KnownDifferences::default(),
            );
            script
                .run_case(case, &mut target.unwrap())
                .unwrap_or_else(|fault| panic!("{fault}"));
        }
    }
}

#[test]
fn shrinking_keeps_only_the_steps_that_fail() {
    let line = |text: &str| history::Step::line(text).unwrap();
    let mut steps: Vec<_> = (0..40).map(|n| line(&format!("a sync /{n}"))).collect();
    steps.insert(10, line("a create /x \"22\" ephemeral acl=[31@auth:]"));
    steps.insert(
        30,
        line("a multi { delete /x -1 ; delete /y -1 ; check /z 0 }"),
    );
    let mut runs = 0;
    let left = shrink(steps, 500, |steps| {
        runs += 1;
        let texts: Vec<_> = steps.iter().flat_map(history::Step::texts).collect();
        let created = texts.iter().position(|text| text.contains("create /x"));
        let deleted = texts.iter().position(|text| text.contains("delete /y"));
        Ok(created.is_some() && created < deleted)
    });
    let left = left.unwrap();
    let texts: Vec<_> = left.iter().flat_map(history::Step::texts).collect();
    assert_eq!(
        texts,
        ["a create /x \"\" ephemeral", "a multi { delete /y -1 }"]
    );
    assert!(runs < 100, "{runs} runs");
}
