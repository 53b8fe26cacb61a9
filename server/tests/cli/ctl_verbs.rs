//! Every verb once, on the command line.

use std::{collections::BTreeSet, net::TcpStream};

use crate::{
    ctl::{ctl, done, server},
    program::{Running, open, run, scratch_file, text},
};

/// Returns the first number in the output of a verb.
fn number(printed: &str) -> String {
    let digits = |symbol: &char| symbol.is_ascii_digit();
    let from = printed.chars().skip_while(|symbol| !digits(symbol));
    from.take_while(digits).collect()
}

/// Runs verbs in order and checks the start of their output, up to what differs between runs. Returns
/// the verbs.
fn play(server: &Running) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut ask = |args: &[&str], expected: &str| {
        seen.insert(args[0].to_owned());
        let printed = done(server, args);
        assert!(printed.starts_with(expected), "{args:?}: {printed}");
        printed
    };
    let scratch = |name: &str, content: &str| {
        let file = scratch_file(name);
        std::fs::write(&file, content).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let dir = scratch_file("ctl_verbs_data");
    let _ = std::fs::remove_dir_all(&dir);
    let dir = dir.to_str().unwrap();
    ask(&["freeze"], "{}");
    ask(&["now"], "{\"elapsed_ms\":");
    ask(&["advance", "5s"], "{}");
    ask(&["advance", "5s", "--strict"], "{}");
    ask(&["auto-advance", "never"], "{}");
    ask(&["unfreeze"], "{}");
    ask(
        &["seed", &scratch("ctl_verbs.yaml", "/a: x\n")],
        "{\"changed\":0,\"created\":1}",
    );
    ask(&["get", "/a"], "{\"data\":\"x\"");
    ask(&["children", "/"], "{\"children\":[");
    ask(&["create", "/made", "x"], "/made\n");
    ask(
        &["create", "/made/n-", "--sequential"],
        "/made/n-0000000000\n",
    );
    ask(&["set", "/made", "-y", "--version", "0"], "{\"version\":1}");
    ask(&["tree", "/made"], "{\"is_truncated\":false,\"znodes\":[{");
    ask(&["delete", "/made", "--recursive"], "{\"deleted\":2}");
    ask(&["dump"], "znode / ");
    ask(
        &["story", "--title", "it"],
        "minikeeper: story of it\nserver ",
    );
    ask(&["story", "--field", "html"], "<!doctype html>");
    ask(&["advise", "--ignore", "herd"], "{\"entry_count\":");
    ask(&["now", "--field", "is_frozen"], "false\n");
    ask(&["export-tree", "--format", "yaml"], "/a: \"x\"");
    ask(&["export-data", dir], "{\"zxid\":\"0x");
    let snapshot = number(&ask(&["snapshot"], "{\"snapshot\":"));
    ask(
        &["seed", &scratch("ctl_verbs_2.yaml", "/a: y\n")],
        "{\"changed\":1,",
    );
    ask(&["restore", &snapshot], "{}");
    ask(&["drop-snapshot", &snapshot], "{}");
    ask(&["get", "/a"], "{\"data\":\"x\"");
    ask(&["import-data", dir], "{}");
    ask(&["save"], "{}");
    ask(&["fork", "copy"], "127.0.0.1:");
    ask(&["create-universe", "mine"], "127.0.0.1:");
    ask(&["universes"], "{\"universes\":[");
    ask(&["drop-universe", "mine"], "{}");
    let fault = number(&ask(
        &["inject", "refuse", "--address", "127.0.0.2", "--optional"],
        "{\"fault\":",
    ));
    ask(&["faults"], "{\"faults\":[{");
    ask(
        &["until-hit", &fault, "--hits", "0"],
        "{\"hits\":0,\"last_hit\":null}",
    );
    ask(&["remove-fault", &fault], "{\"hits\":0}");
    ask(&["reset-faults"], "{}");
    let (_stream, session, _) = open(server.address());
    let id = session.session_id.to_string();
    ask(&["until-sessions", "1"], "{}");
    ask(&["sessions"], "{\"sessions\":[{");
    ask(&["silence", &id], "{\"count\":1}");
    ask(&["unsilence", "/e"], "{\"count\":1}");
    ask(&["until-children", "/", "3"], "{}");
    ask(&["until-contenders", "/a", "0"], "{}");
    ask(&["until-idle", "--quiet", "1ms"], "{}");
    let late = ctl(server, &["until-watched", "/a", "--within", "1ms"]);
    seen.insert("until-watched".to_owned());
    assert_eq!(late.status.code(), Some(1));
    assert!(text(&late.stderr).contains("/a"));
    let mut ask = |args: &[&str], expected: &str| {
        seen.insert(args[0].to_owned());
        assert!(done(server, args).starts_with(expected), "{args:?}");
    };
    ask(&["disconnect", &id], "{\"count\":1}");
    ask(&["expire", &id], "{\"count\":1}");
    ask(&["disconnect-all"], "{}");
    ask(&["restart", "--keep", "data"], "{}");
    ask(&["get", "/a"], "{\"data\":\"x\"");
    ask(&["come-up"], "{}");
    ask(&["go-down"], "127.0.0.1:");
    assert_eq!(ctl(server, &["now"]).status.code(), Some(1));
    seen
}

/// Two processes that share only the output of the first.
#[test]
fn server_goes_down_and_comes_up_from_a_shell() {
    let server = server(&[]);
    let side = done(&server, &["go-down"]);
    assert!(TcpStream::connect(server.address()).is_err());
    let output = run(&["ctl", "--server", side.trim_end(), "come-up"]);
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("{}\n".into(), "".into())
    );
    TcpStream::connect(server.address()).unwrap();
    let output = run(&["ctl", "--server", side.trim_end(), "now"]);
    assert_eq!(output.status.code(), Some(1));
    // A server that is down terminates normally.
    done(&server, &["go-down"]);
    assert_eq!(server.terminate().0.code(), Some(0));
}

/// A separate control port serves only control, whether the server is up or down.
#[test]
fn control_has_a_separate_port() {
    let mut server = Running::start(&["--port", "0", "--control-listen", "127.0.0.1:0"]);
    let url = server.line_after("control on http://");
    let control = url.split('/').next().unwrap();
    assert_ne!(control, server.address().to_string());
    assert_eq!(ctl(&server, &["now"]).status.code(), Some(1));
    for (verb, printed) in [
        ("go-down", format!("{control}\n")),
        ("come-up", "{}\n".to_owned()),
    ] {
        let output = run(&["ctl", "--server", control, verb]);
        assert_eq!(
            (text(&output.stdout), text(&output.stderr)),
            (printed, "".into())
        );
    }
    TcpStream::connect(server.address()).unwrap();
}

/// A verb without a match, or a fault that never acted, has tested nothing: exit code 1, and the error
/// says what to do.
#[test]
fn verb_without_a_match_fails() {
    let server = server(&[]);
    let (_stream, session, _) = open(server.address());
    let fails = |args: &[&str], words: &str| {
        let output = ctl(&server, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let sentence = text(&output.stderr);
        assert!(sentence.contains(words), "{args:?}: {sentence}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
    };
    for verb in ["expire", "disconnect", "silence", "unsilence"] {
        for who in ["0x1", "127.0.0.1:1", "digest:nobody", "/nobodys"] {
            fails(&[verb, who], "; set allow_none to permit that");
            let allowed = done(&server, &[verb, who, "--allow-none"]);
            assert_eq!(allowed, "{\"count\":0}\n", "{verb}");
        }
    }
    fails(&["get", "/none"], "no znode \"/none\"");
    fails(&["children", "/none"], "no znode \"/none\"");
    fails(&["restore", "9"], "no snapshot 9");
    fails(&["drop-snapshot", "9"], "no snapshot 9");
    fails(&["drop-universe", "none"], "no universe \"none\"");
    fails(&["remove-fault", "9"], "fault 9: unknown");
    fails(&["until-hit", "9"], "fault 9: unknown");
    let fault = number(&done(&server, &["inject", "cut", "--path", "/never"]));
    fails(&["remove-fault", &fault], "ended and never acted");
    fails(&["inject", "cut", "--path", "/q/"], "/q/*");
    fails(&["until-children", "/q/", "0"], "slash");
    done(&server, &["create-universe", "mine"]);
    fails(
        &["--universe", "mine", "go-down"],
        "call it without a universe",
    );
    let id = session.session_id.to_string();
    let strict = done(&server, &["expire", &id, "--allow-none"]);
    assert_eq!(strict, "{\"count\":1}\n");
}

#[test]
fn verbs_work_from_a_shell() {
    let saved = scratch_file("ctl_verbs_saved");
    let _ = std::fs::remove_dir_all(&saved);
    let seen = play(&server(&["--data-dir", saved.to_str().unwrap()]));
    let verbs = minikeeper::control::verbs();
    let all: BTreeSet<_> = verbs.map(|verb| verb.name.replace('_', "-")).collect();
    // The missing ones have no other kinds of parameters and answers.
    assert!(seen.is_subset(&all), "{:?}", seen.difference(&all));
}
