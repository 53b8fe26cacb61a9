//! Advice on what clients did: over the API, over HTTP and in stories.

use minikeeper::{Advice, Fault, FaultGuard, JournalFilter, OpCode, Server};
use minikeeper_client::{Client, CreateMode};
use minikeeper_protocol::CreateMode as Mode;
use minikeeper_recipes::{InterProcessMutex, InterProcessSemaphoreV2};
use minikeeper_test_kit::wire::{self, Wire};
use serde_json::{Value, json};

use crate::{
    http::{done, get, said, scene},
    kit::TIMEOUT_MS,
};

/// A server on which the reply to the create of a sequential znode has been lost.
async fn orphan() -> (Server, Client, FaultGuard) {
    let server = Server::builder().start().await.unwrap();
    let client = Client::connect(&server.connect_string()).await.unwrap();
    let lost = Fault::lose_reply().on(OpCode::Create).once();
    let guard = server.inject(lost).unwrap();
    let queued = client.create("/lock-", b"", CreateMode::EphemeralSequential);
    queued.await.unwrap_err();
    (server, client, guard)
}

/// A lock without protection whose reply is lost: the znode that nobody knows of stays in the queue.
#[tokio::test]
async fn orphan_of_a_lost_reply_is_named() {
    let (server, _client, guard) = orphan().await;
    let advice = server.advise(&[]).unwrap();
    let [finding] = &advice.findings[..] else {
        panic!("{advice}");
    };
    assert_eq!(finding.rule.name, "unprotected-sequential");
    assert!(
        finding.text.ends_with("and the reply was lost"),
        "{finding}"
    );
    let entries = server.journal(&JournalFilter::new()).unwrap();
    let entry = (entries.iter()).find(|entry| entry.number == finding.entries[0]);
    assert!(entry.unwrap().to_string().contains("create"), "{entry:?}");
    drop(guard);
}

#[tokio::test]
async fn recipes_make_no_known_mistake() {
    let server = Server::builder().start().await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(Client::connect(&server.connect_string()).await.unwrap());
    }
    let mut tasks = Vec::new();
    for client in clients {
        tasks.push(tokio::spawn(async move {
            let mutex = InterProcessMutex::new(client.clone(), "/locks/a").unwrap();
            let semaphore = InterProcessSemaphoreV2::new(client, "/locks/s", 2).unwrap();
            for _ in 0..10 {
                let guard = mutex.acquire().await.unwrap();
                guard.release().await.unwrap();
                let lease = semaphore.acquire().await.unwrap();
                drop(lease);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let advice = server.advise(&[]).unwrap();
    assert!(advice.findings.is_empty(), "{advice}");
    assert!(advice.entry_count > 100, "{advice}");
}

async fn increment(client: &Client) {
    let data = client.get_data("/count").await.unwrap();
    let count: u32 = std::str::from_utf8(data.as_bytes())
        .unwrap()
        .parse()
        .unwrap();
    let next = (count + 1).to_string();
    let set = client.set_data("/count", next.as_bytes(), None);
    set.await.unwrap();
}

/// Was reported as `lost-update`: the counter is read and written without a version, but under a mutex.
#[tokio::test]
async fn counter_under_a_mutex_loses_no_update_and_one_without_does() {
    let server = Server::builder().start().await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(Client::connect(&server.connect_string()).await.unwrap());
    }
    clients[0]
        .create("/count", b"0", CreateMode::Persistent)
        .await
        .unwrap();
    let tasks = clients.iter().cloned().map(|client| {
        tokio::spawn(async move {
            let mutex = InterProcessMutex::new(client.clone(), "/locks/count").unwrap();
            for _ in 0..6 {
                let guard = mutex.acquire().await.unwrap();
                increment(&client).await;
                guard.release().await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let advice = server.advise(&[]).unwrap();
    assert!(advice.findings.is_empty(), "{advice}");
    increment(&clients[1]).await;
    let advice = server.advise(&[]).unwrap();
    let found: Vec<_> = advice.findings.iter().map(|it| it.rule.name).collect();
    assert_eq!(found, ["lost-update"]);
}

#[test]
fn verb_returns_findings_that_names_and_paths_silence() {
    let scene = scene(|_| {});
    let (mut wire, _) = Wire::open(scene.address(), TIMEOUT_MS);
    wire.must(&wire::create("/l", b"", Mode::Persistent));
    for _ in 0..2 {
        wire.must(&wire::create("/l/lock-", b"", Mode::EphemeralSequential));
    }
    let advice = done(get(scene.address(), "advise"));
    let finding = &advice["findings"][0];
    assert_eq!(finding["rule"], "unprotected-sequential");
    assert_eq!(
        (&finding["path"], &finding["count"]),
        (&json!("/l/lock-"), &json!(2))
    );
    assert_eq!(finding["entries"].as_array().unwrap().len(), 2);
    assert!(finding["why"].is_string() && finding["do"].is_string());
    assert!(
        advice["text"]
            .as_str()
            .unwrap()
            .contains("\n  why: if the reply is lost")
    );
    for ignored in ["unprotected-sequential", "/l/**", "herd,/l/*"] {
        let advice = done(get(scene.address(), &format!("advise?ignore={ignored}")));
        assert_eq!(advice["findings"], json!([]), "{ignored}");
    }
    let unknown = get(scene.address(), "advise?ignore=heard");
    assert!(said(&unknown, 400).contains("\"heard\" is not the name of a rule"));
    // A file says the same.
    let journal = done(get(scene.address(), "journal?limit=100000"));
    let of_file = Advice::of_json(&journal.to_string(), &[]).unwrap();
    let of_file: Value = serde_json::from_str(&of_file.to_json()).unwrap();
    assert_eq!(of_file["findings"], advice["findings"]);
    scene.end();
}

/// A file may have been written by anything.
#[tokio::test]
async fn journal_with_any_value_in_any_place_is_read_or_refused() {
    let (server, client, _) = orphan().await;
    let (_, _watch) = client.exists_and_watch("/lock-").await.unwrap();
    client
        .create("/lock-", b"a", CreateMode::Persistent)
        .await
        .unwrap();
    client.delete("/lock-", None).await.unwrap();
    let journal: Value = serde_json::from_str(&server.story().to_json()).unwrap();
    let count = journal["entries"].as_array().unwrap().len();
    assert!(count > 8, "{journal}");
    let mut tried = 0;
    let values = [
        "null",
        "true",
        "-1",
        "0",
        "18446744073709551615",
        "1e300",
        "\"\"",
        "\"\\u0000\"",
        "\"/\"",
        "\"0xffffffffffffffff\"",
        "[]",
        "[[]]",
        "{}",
    ];
    for value in values.map(|it| serde_json::from_str::<Value>(it).unwrap()) {
        let mut read = |journal: &Value| {
            tried += 1;
            drop(Advice::of_json(&journal.to_string(), &[]));
        };
        read(&value);
        read(&json!({ "entries": value }));
        for entry in 0..count {
            let mut changed = journal.clone();
            changed["entries"][entry] = value.clone();
            read(&changed);
            for name in journal["entries"][entry].as_object().unwrap().keys() {
                let mut changed = journal.clone();
                changed["entries"][entry][name] = value.clone();
                read(&changed);
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
}

#[tokio::test]
async fn story_has_the_findings() {
    let server = Server::builder().start().await.unwrap();
    let client = Client::connect(&server.connect_string()).await.unwrap();
    assert!(!server.story().to_string().contains("known mistakes"));
    for path in ["/lock-", "/queue-"] {
        client
            .create(path, b"", CreateMode::EphemeralSequential)
            .await
            .unwrap();
    }
    for _ in 0..10 {
        client.exists("/missing").await.unwrap();
    }
    let story = server.story();
    let text = story.to_string();
    assert!(
        text.contains("\nknown mistakes:\n  unprotected-sequential: "),
        "{text}"
    );
    assert!(text.contains("\n  polling: session "), "{text}");
    let lines = text.lines().skip_while(|line| *line != "known mistakes:");
    assert_eq!(
        lines.take_while(|line| !line.is_empty()).count(),
        4,
        "{text}"
    );
    let json: Value = serde_json::from_str(&story.to_json()).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 3);
    let again = Advice::of_json(&story.to_json(), &["polling"]).unwrap();
    assert_eq!(again.findings.len(), 2);
}
