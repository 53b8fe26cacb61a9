//! `minikeeper sweep`: runs of a command, the report and its files.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{program, run, scratch_file, text, wait};

/// Returns a new folder for a report.
fn folder(name: &str) -> PathBuf {
    let folder = scratch_file(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// Returns the report that a page shows.
fn report_of(page: &str) -> serde_json::Value {
    let (_, content) = page.split_once(" id=\"content\">").unwrap();
    let (content, _) = content.split_once("</script>").unwrap();
    serde_json::from_str::<serde_json::Value>(content).unwrap()["sweep"].take()
}

/// Sweeps a script of a shell, in which `$cli` is the ZooKeeper shell with the server's address.
/// Returns the exit code, stdout and stderr.
#[track_caller]
fn sweep(options: &[&str], script: &str) -> (i32, String, String) {
    let script = format!(
        "cli='{} cli -server {{}}'\n{script}",
        env!("CARGO_BIN_EXE_minikeeper")
    );
    let output = run(&[&["sweep"], options, &["--", "sh", "-c", &script]].concat());
    let code = output.status.code().expect("an exit code");
    (code, text(&output.stdout), text(&output.stderr))
}

#[test]
fn failure_is_reported_with_a_command_that_repeats_it() {
    let out = folder("sweep-failure");
    let out = out.to_str().unwrap();
    let script = "$cli create /a";
    let options = [
        "--out",
        out,
        "--fault",
        "request-lost",
        "--fault",
        "connection-cut",
    ];
    let (code, report, told) = sweep(&options, script);
    assert_eq!(code, 1, "{report}{told}");
    let point = "request-lost:1:create2:1:/a";
    assert!(
        report.contains(
            "1. The test fails: KeeperErrorCode = ConnectionLoss for /a (exit status: 1)\n"
        ),
        "{report}"
    );
    assert!(
        report.contains("when the 1st create2 of /a by client 1 was lost with its connection"),
        "{report}"
    );
    assert!(
        report.contains(&format!("minikeeper sweep --only '{point}' -- sh -c ")),
        "{report}"
    );
    assert!(report.contains("fault 1: cut create2 /a"), "{report}");
    assert!(told.contains(&format!("failed: {point}\n")), "{told}");
    let page = fs::read_to_string(format!("{out}/report.html")).unwrap();
    let shown = report_of(&page);
    assert_eq!(shown["state"], "failed");
    let failure = &shown["groups"][0]["failures"][0];
    assert_eq!(failure["point"], point);
    let again = format!("minikeeper sweep --only '{point}' -- sh -c ");
    assert!(failure["command"].as_str().unwrap().starts_with(&again));
    let (fault, entries) = (
        &failure["timeline"]["fault"],
        failure["timeline"]["entries"].as_array().unwrap(),
    );
    let acted = entries
        .iter()
        .find(|entry| entry["number"] == *fault)
        .unwrap();
    assert!(acted["text"].as_str().unwrap().contains("cut create2"));
    assert_eq!(
        failure["timeline"]["clients"][acted["session"].as_str().unwrap()],
        1
    );
    let row = shown["map"]["rows"].as_array().unwrap().iter();
    let mut row = row.filter(|row| row["op"] == "create2");
    assert_eq!(
        row.next().unwrap()["states"],
        serde_json::json!({"request-lost": "failed", "connection-cut": "passed"})
    );
    let story = format!("{out}/{}", failure["story"].as_str().unwrap());
    assert!(fs::read_to_string(&story).unwrap().contains("request-lost"));
    let output = fs::read_to_string(story.replace(".html", ".out")).unwrap();
    assert!(output.to_lowercase().contains("connection"), "{output}");
    let replayed = run(&["replay", &story.replace(".html", ".rec")]);
    assert_eq!(replayed.status.code(), Some(0), "{replayed:?}");
    assert!(
        text(&replayed.stdout).starts_with("equal: "),
        "{replayed:?}"
    );
    assert!(
        fs::read_to_string(format!("{out}/tried"))
            .unwrap()
            .contains(&format!("failed {point}"))
    );
    // As printed.
    let (code, report, _) = sweep(&["--out", out, "--only", point], script);
    assert_eq!(code, 1);
    assert!(
        report.contains("1 of 1 points tried: 0 passed, 1 failed"),
        "{report}"
    );
}

#[test]
fn command_that_copes_passes_and_a_resumed_sweep_leaves_out_what_passed() {
    let out = folder("sweep-clean");
    let out = out.to_str().unwrap();
    // What is left after a fault is not its concern.
    let script = "for try in 1 2 3; do $cli create /a && exit; $cli get /a && exit; done; exit 1";
    let options = [
        "--out",
        out,
        "--jobs",
        "2",
        "--fault",
        "reply-lost",
        "--fault",
        "request-lost",
    ];
    let (code, report, told) = sweep(&options, script);
    assert_eq!((code, told.as_str()), (0, ""), "{report}");
    assert!(
        report.contains(" 0 failed, 0 hung, 0 not reached"),
        "{report}"
    );
    assert!(report.contains("report: "), "{report}");
    let (code, report, _) = sweep(&[&options[..], &["--resume"]].concat(), script);
    assert_eq!(code, 0, "{report}");
    assert!(
        report.contains("minikeeper sweep: clean: 0 of "),
        "{report}"
    );
    assert!(report.contains(" points passed earlier"), "{report}");
    let (code, report, told) = sweep(&[&options[..], &["--runs", "4"]].concat(), script);
    assert_eq!(code, 3, "{report}");
    assert!(
        report.starts_with("minikeeper sweep: incomplete ("),
        "{report}"
    );
    assert!(
        report.contains(" points were not tried): 2 of "),
        "{report}"
    );
    assert!(told.contains("the sweep is incomplete: "), "{told}");
    let shown = report_of(&fs::read_to_string(format!("{out}/report.html")).unwrap());
    let rows = shown["map"]["rows"].as_array().unwrap().iter();
    let states = rows.flat_map(|row| row["states"].as_object().unwrap().values());
    let states: Vec<_> = states.map(|state| state.as_str().unwrap()).collect();
    let count = |wanted| states.iter().filter(|state| **state == wanted).count() as u64;
    assert_eq!((count("passed"), count("failed")), (2, 0), "{states:?}");
    assert_eq!(count("untried"), shown["numbers"]["untried"]);
    assert_eq!(
        count("equivalent"),
        shown["numbers"]["left_out_as_equivalent"]
    );
    let (code, report, _) = sweep(
        &[&options[..], &["--runs", "4", "--allow-untried", "100"]].concat(),
        script,
    );
    assert_eq!(code, 0, "{report}");
    assert!(
        report.starts_with("minikeeper sweep: clean: 2 of "),
        "{report}"
    );
}

#[test]
fn command_that_does_not_end_hangs() {
    let out = folder("sweep-hang");
    let options = [
        "--out",
        out.to_str().unwrap(),
        "--fault",
        "request-lost",
        "--run-time",
        "2",
    ];
    let (code, report, told) = sweep(&options, "$cli create /a || sleep 600");
    assert_eq!(code, 1, "{report}");
    assert!(
        report.contains("The test hangs: it did not end within 2 s"),
        "{report}"
    );
    assert!(told.contains("hung: request-lost:1:create2:1:/a"), "{told}");
}

#[test]
fn command_that_fails_without_faults_is_not_swept() {
    let out = folder("sweep-always");
    let options = ["--out", out.to_str().unwrap()];
    let (code, report, told) = sweep(&options, "echo because; exit 3");
    assert_eq!(code, 1);
    assert!(
        report.contains("The test fails without any fault: exit status: 3\nbecause"),
        "{report}"
    );
    assert!(
        told.contains("minikeeper: the command fails without any fault"),
        "{told}"
    );
    let output = run(&["sweep", "--out", options[1], "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(1));
    let report = text(&output.stdout);
    assert!(report.contains("exit status: 127"), "{output:?}");
    assert!(report.contains("/no/such/program"), "{output:?}");
}

/// `--out .` would replace files of the user.
#[test]
fn folder_with_other_files_is_left_alone() {
    let out = folder("sweep-other");
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("mine"), "").unwrap();
    let output = run(&["sweep", "--out", out.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.ends_with("has files that are of no sweep; name another folder with --out\n"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn wrong_usage_names_what_is_right() {
    for (options, wanted) in [
        (
            &["--only", "nonsense", "--", "true"][..],
            "FAULT:CLIENT:OPERATION:ORDINAL:PATH",
        ),
        (
            &["--fault", "nonsense", "--", "true"],
            "[possible values: reply-lost,",
        ),
        (&["--depth", "3", "--", "true"], "3 is not in 1..=2"),
        (&["--outage-ms", "0", "--", "true"], "a number from 1 on"),
        (&["--rollback", "0", "--", "true"], "0 is not in 1..=1000"),
        (&["--time", "5h", "--", "true"], "a number of seconds"),
        (&["--allow", "reply-lost", "--", "true"], "no reason"),
        (
            &["--suite", "--orders", "--", "true"],
            "cannot be used with",
        ),
        (
            &["--orders", "--fault", "rollback", "--", "true"],
            "does not act in orders",
        ),
        (&["--time", "1"], "COMMAND"),
    ] {
        let output = run(&[&["sweep"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(text(&output.stderr).contains(wanted), "{output:?}");
    }
}

/// The second start takes what the first has left for the whole.
#[test]
fn command_that_was_killed_is_started_again() {
    let out = folder("sweep-crash");
    let options = ["--out", out.to_str().unwrap(), "--fault", "client-crash"];
    let script = "test $MINIKEEPER_SWEEP_START = 1 || echo started again\n\
                  $cli stat /t >/dev/null 2>&1 && { $cli stat /t/quota; exit; }\n\
                  $cli create /t && $cli create /t/quota";
    let (code, report, told) = sweep(&options, script);
    assert_eq!(code, 1, "{report}{told}");
    let what =
        "when the program was killed after the 1st create2 of /t by client 1, and started again";
    assert!(
        report.contains(what) && report.contains("started again\n"),
        "{report}"
    );
    let sound = "for path in /t /t/quota; do $cli stat $path >/dev/null 2>&1 || $cli create $path || exit 1; done";
    let (code, report, told) = sweep(&options, sound);
    assert_eq!(code, 0, "{report}{told}");
}

#[test]
fn failure_that_is_expected_is_allowed_and_what_is_left_out_is_not_tried() {
    let out = folder("sweep-rules");
    let out = out.to_str().unwrap();
    let allow = "request-lost raises ConnectionLoss because it is tried again later";
    let leave_out = "connection-cut because the command ends anyway";
    let options = [
        "--out",
        out,
        "--fault",
        "request-lost",
        "--fault",
        "connection-cut",
    ];
    let rules = ["--allow", allow, "--leave-out", leave_out];
    let (code, report, told) = sweep(&[&options[..], &rules].concat(), "$cli create /a");
    assert_eq!(code, 0, "{report}{told}");
    assert!(report.contains(" allowed to fail, 0 failed"), "{report}");
    assert!(report.contains(&format!("Allowed: {allow}: ")), "{report}");
    assert!(
        report.contains(&format!("Left out: {leave_out}: 1 point\n")),
        "{report}"
    );
}

#[test]
fn points_that_passed_before_are_not_tried_again() {
    let out = folder("sweep-new");
    let known = out.with_extension("known");
    let _ = fs::remove_file(&known);
    let options = [
        "--out",
        out.to_str().unwrap(),
        "--fault",
        "connection-cut",
        "--new-since",
    ];
    let options = [&options[..], &[known.to_str().unwrap()]].concat();
    let (code, report, told) = sweep(&options, "$cli create /a");
    assert!(
        code == 0 && report.contains(" 1 of 1 points tried"),
        "{report}{told}"
    );
    let (code, report, told) = sweep(&options, "$cli create /a; $cli create /b");
    assert_eq!(code, 0, "{report}{told}");
    assert!(
        report.contains(" 1 of 2 points tried") && report.contains("; 1 point passed earlier"),
        "{report}"
    );
}

#[test]
fn what_a_command_leaves_is_compared() {
    let out = folder("sweep-compare");
    let out = out.to_str().unwrap();
    let script = "$cli create -s /n- || $cli create -s /n-";
    let options = ["--out", out, "--fault", "reply-lost"];
    let (code, report, told) = sweep(&options, script);
    assert_eq!(code, 0, "{report}{told}");
    let (code, report, told) = sweep(&[&options[..], &["--compare"]].concat(), script);
    assert_eq!(code, 1, "{report}{told}");
    assert!(
        report.contains("the znode /n-* is there 2 times, and once without faults"),
        "{report}"
    );
}

#[test]
fn suite_without_a_swept_test_is_incomplete() {
    let out = folder("sweep-suite");
    let out = out.to_str().unwrap();
    let suite = |script: &str| {
        let output = run(&["sweep", "--suite", "--out", out, "--", "sh", "-c", script]);
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let (code, told) = suite("test -n $MINIKEEPER_SWEEP_SUITE");
    assert!(
        code == Some(3) && told.contains("no test was swept"),
        "{told}"
    );
    let (code, told) = suite("exit 7");
    assert!(
        code == Some(1) && told.contains("the suite fails, and its sweeps do not"),
        "{told}"
    );
    // A test in any language.
    let test = format!(
        "ctl='{} ctl --server '$MINIKEEPER_SWEEP_SUITE\n\
         sweep=$($ctl sweep-start --test one --repeat \"sh one '{{}}'\") || exit 1\n\
         while :; do\n\
           $ctl create-universe u >/dev/null && run=$($ctl --universe u sweep-next $sweep --json) || exit 1\n\
           case $run in *'\"run\":0'*) break;; esac\n\
           {0} cli -server $MINIKEEPER_SWEEP_SUITE/u create /a >/dev/null 2>&1 && outcome=passed || outcome=failed\n\
           $ctl sweep-end $sweep $outcome --message lost >/dev/null && $ctl drop-universe u >/dev/null || exit 1\n\
         done",
        env!("CARGO_BIN_EXE_minikeeper")
    );
    let (code, told) = suite(&test);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("one: when ") && told.contains("sh one 'reply-lost:"),
        "{told}"
    );
}

/// Starts a sweep of a command that does not end. Returns the sweep and the process of the command.
fn endless_sweep(name: &str) -> (Child, u32) {
    let out = folder(name);
    let note = out.with_extension("note");
    let _ = fs::remove_file(&note);
    let script = format!("echo $$ >{}.new; mv {0}.new {0}; sleep 600", note.display());
    let child = program(&[
        "sweep",
        "--out",
        out.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        &script,
    ])
    .spawn()
    .unwrap();
    while !note.exists() {
        std::thread::yield_now();
    }
    let process = fs::read_to_string(&note).unwrap();
    (child, process.trim().parse().unwrap())
}

fn lives(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat"));
    state.is_ok_and(|state| !state.contains(") Z"))
}

/// An interrupted sweep exited with 0; SIGHUP ended the sweep, and left its commands.
#[test]
fn signal_ends_the_command_and_the_sweep_which_is_incomplete() {
    for (name, signal) in [
        ("sweep-term", Signal::TERM),
        ("sweep-int", Signal::INT),
        ("sweep-hup", Signal::HUP),
    ] {
        let (mut child, process) = endless_sweep(name);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let first = stdout.lines().map_while(Result::ok).next().unwrap();
        assert!(
            first.starts_with(
                "minikeeper sweep: incomplete (the sweep was interrupted; nothing was tried): 0 of 0"
            ),
            "{name}: {first}"
        );
        assert_eq!(wait(&mut child).code(), Some(3), "{name}");
        // The shell has gone with what it has started.
        assert!(!lives(process), "{name}: {process} lives");
    }
}

/// Commands outlived a sweep that was killed, without end.
#[test]
fn commands_end_with_a_sweep_that_is_killed() {
    let (mut child, process) = endless_sweep("sweep-kill");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    wait(&mut child);
    let mut pauses = 0;
    while lives(process) {
        pauses += 1;
        assert!(pauses < 30_000, "{process} lives");
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
}

/// It filled the disk until its time was over.
#[test]
fn command_that_writes_without_end_fails() {
    let out = folder("sweep-endless");
    let options = ["--out", out.to_str().unwrap()];
    let (code, report, _) = sweep(&options, "exec cat /dev/zero");
    assert_eq!(code, 1, "{report}");
    let first = report.lines().take(3).collect::<Vec<_>>().join(" ");
    assert!(
        first.contains("its output exceeds the limit of 67108864 bytes"),
        "{first}"
    );
}

/// The sweep wrote to where the links point, and two sweeps wrote over each other's files.
#[test]
fn folder_with_links_or_of_another_sweep_is_refused() {
    let out = folder("sweep-links");
    let options = ["--out", out.to_str().unwrap()];
    assert_eq!(sweep(&options, "true").0, 3);
    let elsewhere = scratch_file("sweep-links-elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    fs::remove_file(out.join("report.html")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, out.join("report.html")).unwrap();
    let (code, _, told) = sweep(&options, "true");
    assert_eq!(code, 1);
    assert!(told.contains("report.html is a symbolic link"), "{told}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");

    let (mut child, _) = endless_sweep("sweep-shared");
    let shared = scratch_file("sweep-shared");
    let (code, _, told) = sweep(&["--out", shared.to_str().unwrap()], "true");
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("another sweep writes to "), "{told}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    wait(&mut child);
}

/// A server's, or a command's, escape sequences reached the terminal.
#[test]
fn report_has_no_escape_sequences_and_loads_nothing() {
    let out = folder("sweep-escapes");
    let options = ["--out", out.to_str().unwrap()];
    let (code, report, _) = sweep(&options, "printf '\\033[31mred\\007'; exit 1");
    assert_eq!(code, 1, "{report}");
    assert!(report.contains("\\u{1b}[31mred\\u{7}"), "{report}");
    assert!(!report.contains('\x1b'), "{report}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("content=\"default-src 'none'; script-src 'nonce-"),
        "{page}"
    );
}

/// Sweeps a script of `docs/find-the-fault.md` or `docs/find-the-order.md`, as the page says. Returns the exit code
/// and stdout.
fn sweep_of_the_guide(script: &str, options: &[&str]) -> (Option<i32>, String) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/sweep");
    let programs = Path::new(env!("CARGO_BIN_EXE_minikeeper")).parent();
    let path = env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.unwrap().display());
    let out = folder(&format!("sweep-guide-{script}"));
    let tree = if script.starts_with("claim") {
        "claims.yaml"
    } else {
        "jobs.yaml"
    };
    let mut command = program(&["sweep", "--tree", tree, "--out"]);
    command.arg(&out).args(options).args(["--", "sh", script]);
    let output = command.current_dir(scripts).env("PATH", path).output();
    let output = output.unwrap();
    (output.status.code(), text(&output.stdout))
}

#[test]
fn script_of_the_guide_fails_and_its_cure_passes() {
    let point = "reply-lost:1:create2:1:/jobs/job-";
    let again = format!("minikeeper sweep --tree jobs.yaml --only '{point}' -- sh order.sh\n");
    let (code, report) = sweep_of_the_guide("order.sh", &[]);
    assert!(code == Some(1) && report.contains(&again), "{report}");
    // Each try is a session of its own, and the second job is what the reader looks for.
    let second = "create2 /jobs/job- PERSISTENT_SEQUENTIAL 2 B -> OK /jobs/job-0000000001";
    assert!(report.contains(second), "{report}");
    let (code, report) = sweep_of_the_guide("order.sh", &["--only", point]);
    assert_eq!(code, Some(1), "{report}");
    assert!(
        report.contains("1 of 1 points tried: 0 passed, 1 failed"),
        "{report}"
    );
    let (code, report) = sweep_of_the_guide("order-fixed.sh", &[]);
    assert_eq!(code, Some(0), "{report}");
}

/// No thread of the programs runs when a request is picked: the same order shows the same each time.
#[cfg(target_os = "linux")]
#[test]
fn script_of_the_guide_breaks_in_an_order_and_its_cure_in_none() {
    let (code, report) = sweep_of_the_guide("claim.sh", &["--orders"]);
    assert_eq!(code, Some(1), "{report}");
    for part in [
        "orders of 5 clients tried",
        ", all orders: ",
        " 0 not followed; ",
        "when its requests are served in this order\n",
        "     minikeeper sweep --tree claims.yaml --orders --only 'order:1x2.2x2.3x2.4x2.5x2' -- sh claim.sh\n",
        "The test passes if request 5 comes before request 3.",
    ] {
        assert!(report.contains(part), "{part} in {report}");
    }
    let only = ["--orders", "--only", "order:1x2.2x2.3x2.4x2.5x2"];
    let (code, report) = sweep_of_the_guide("claim.sh", &only);
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains(": 0 passed, 1 failed, "), "{report}");
    let (code, report) = sweep_of_the_guide("claim-fixed.sh", &["--orders"]);
    assert_eq!(code, Some(0), "{report}");
}

#[test]
fn options_of_orders_need_them() {
    for options in [
        &["--changes", "1"][..],
        &["--more", "1"],
        &["--clients", "2"],
        &["--alike"],
    ] {
        let output = program(&["sweep"])
            .args(options)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(text(&output.stderr).contains("--orders"), "{options:?}");
    }
    for (options, why) in [
        (
            &["--orders", "--changes", "x"][..],
            "expected a number or \"all\"",
        ),
        (
            &["--orders", "--fault", "reply-lost"],
            "in an order it needs a depth of 2",
        ),
        (&["--only", "order:0"], "\"0\" is no client"),
        (
            &["--orders", "--only", "reply-lost:1:create:1:/a"],
            "orders are tried",
        ),
    ] {
        let output = program(&["sweep"])
            .args(options)
            .args(["--", "true"])
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert!(
            output.status.code() == Some(2) && stderr.contains(why),
            "{options:?}: {stderr}"
        );
    }
}

#[test]
fn command_that_sends_nothing_is_not_swept() {
    let out = folder("sweep-nothing");
    let (code, report, _) = sweep(&["--out", out.to_str().unwrap()], "true");
    assert_eq!(code, 3, "{report}");
    assert!(
        report.starts_with("minikeeper sweep: incomplete (nothing was tried: the test has sent no"),
        "{report}"
    );
}

/// Two processes look whether a znode is there, and then each creates it.
#[cfg(target_os = "linux")]
const RACE: &str = "make() { $cli stat /a >/dev/null 2>&1 || $cli create /a; }\n\
                    make & other=$!\nmake || exit 1\nwait $other";

#[cfg(target_os = "linux")]
#[test]
fn order_that_breaks_a_command_is_found_and_repeated() {
    let out = folder("sweep-orders");
    let out = out.to_str().unwrap();
    let (code, report, told) = sweep(&["--orders", "--out", out], RACE);
    assert_eq!(code, 1, "{report}{told}");
    assert!(
        report.contains(" orders of 4 clients tried, ")
            && report.contains(" 0 hung, 0 not followed;"),
        "{report}"
    );
    // The command is so long that a script does the run again.
    let (_, only) = report.split_once("/again '").unwrap();
    let (only, _) = only.split_once('\'').unwrap();
    let (code, report, told) = sweep(&["--only", only, "--out", out], RACE);
    assert_eq!(code, 1, "{report}{told}");
    assert!(
        report.contains(": 0 passed, 1 failed, 0 hung, 0 not followed;"),
        "{report}"
    );
    let repaired = RACE.replace("$cli create /a;", "$cli create /a || $cli stat /a;");
    let (code, report, told) = sweep(&["--orders", "--out", out], &repaired);
    assert_eq!(code, 0, "{report}{told}");
}

/// It is known as soon as the programs only wait: a run that is killed would take longer than the test may.
#[cfg(target_os = "linux")]
#[test]
fn order_of_a_client_that_never_comes_is_not_followed() {
    let out = folder("sweep-orders-never");
    let options = [
        "--only",
        "order:1.9",
        "--run-time",
        "600",
        "--out",
        out.to_str().unwrap(),
    ];
    let (code, report, told) = sweep(&options, RACE);
    assert_eq!(code, 3, "{report}{told}");
    assert!(report.contains("1 order could not be followed"), "{report}");
}

/// Which of two processes connects first differs from run to run, and so did their numbers.
#[cfg(target_os = "linux")]
#[test]
fn order_numbers_clients_by_the_start_of_their_processes() {
    let out = folder("sweep-orders-processes");
    let mut options = vec!["--out", out.to_str().unwrap()];
    options.extend(["--only", "order:1.2.1x3"].repeat(10));
    let script =
        "(echo stat /n; echo create /n; echo create /n/x) | $cli & echo stat /n | $cli & wait";
    let (_, report, told) = sweep(&options, script);
    assert!(
        report.contains(": 10 passed, 0 failed, 0 hung, 0 not followed;"),
        "{report}{told}"
    );
}

/// The sessions of a command have ended when it has been killed.
#[cfg(target_os = "linux")]
#[test]
fn order_that_hangs_tells_what_each_client_watches() {
    let out = folder("sweep-orders-hang");
    let options = ["--orders", "--runs", "1", "--run-time", "3", "--out"];
    let options = [&options[..], &[out.to_str().unwrap()]].concat();
    let script = "watch() { (echo stat -w /a; exec sleep 600) | $cli; }\nwatch & watch";
    let (code, report, told) = sweep(&options, script);
    assert_eq!(code, 1, "{report}{told}");
    for client in 1..=2 {
        let waits = format!("client {client}: its last request was exists /a; it watches /a (");
        assert!(report.contains(&waits), "{report}");
    }
}
