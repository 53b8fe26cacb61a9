//! Runs the page's script in Node, as a browser would.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::Value;

/// The page with its content drawn, without its scripts.
pub(crate) fn drawn(page: &str) -> String {
    let (before, rest) = page.split_once("<main id=\"page\">").expect("a main");
    let (_, after) = rest.split_once("</main>").expect("its end");
    let (_, results) = after
        .split_once("<script type=\"application/json\" id=\"results\">")
        .expect("results");
    let (results, after) = results.split_once("</script>").expect("their end");
    let (_, code) = after.split_once("<script id=\"code\">").expect("the code");
    let (code, after) = code.split_once("</script>").expect("its end");
    let Value::String(content) = run(code, &format!("page({results}).text")) else {
        panic!("the content is no text");
    };
    format!("{before}<main id=\"page\">{content}</main>{after}")
}

/// The value of an expression in the page's script.
pub(crate) fn value(expression: &str) -> Value {
    run(include_str!("../../src/report/page.js"), expression)
}

fn run(code: &str, expression: &str) -> Value {
    let mut node = Command::new("node")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the tests of the page need Node: install nodejs");
    let script = format!("{code}\nprocess.stdout.write(JSON.stringify({expression}));");
    let mut stdin = node.stdin.take().expect("it is piped");
    stdin.write_all(script.as_bytes()).expect("node reads");
    drop(stdin);
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success(), "node: {}", output.status);
    serde_json::from_slice(&output.stdout).expect("node prints JSON")
}
