//! Quotas: znodes below `/zookeeper/quota`, which zkCli itself creates and deletes.

use std::collections::BTreeMap;

use minikeeper_client::{Client, CreateMode, CreateOptions, Error, ErrorCode};

use crate::{
    connection::Connection, failure::Failure, options::Parsed, output::Output, tree::Walk,
};

/// The znode below which the quotas are.
const ROOT: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

fn limits_path(path: &str) -> String {
    format!("{ROOT}{path}/{LIMITS}")
}

fn stats_path(path: &str) -> String {
    format!("{ROOT}{path}/{STATS}")
}

/// Limits or counts, as their znodes hold them: `count=5,bytes=-1=;byteHardLimit=-1`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Track(BTreeMap<String, i64>);

const COUNT: &str = "count";
const BYTES: &str = "bytes";
const COUNT_HARD: &str = "countHardLimit";
const BYTES_HARD: &str = "byteHardLimit";

/// The options of the commands, and the keys that they set.
const KEYS: [(&str, &str); 4] = [
    ("n", COUNT),
    ("b", BYTES),
    ("N", COUNT_HARD),
    ("B", BYTES_HARD),
];

impl Track {
    fn parse(text: &[u8]) -> Result<Self, Failure> {
        let text = String::from_utf8_lossy(text);
        let mut values = BTreeMap::new();
        for pair in text.split([',', ';']).filter(|pair| !pair.is_empty()) {
            let mut parts = pair.split('=');
            let (key, value) = (parts.next().unwrap_or_default(), parts.next());
            let value = value.and_then(|value| value.parse().ok());
            let value = value.ok_or_else(|| format!("invalid quota {text:?}: {pair:?}"))?;
            values.insert(key.to_owned(), value);
        }
        Ok(Self(values))
    }

    /// Returns a value; -1, no limit, if there is none.
    fn value(&self, key: &str) -> i64 {
        self.0.get(key).copied().unwrap_or(-1)
    }

    fn set(&mut self, key: &str, value: i64) {
        self.0.insert(key.to_owned(), value);
    }

    /// Formats it so that servers before 3.7 read the first two keys.
    fn text(&self) -> String {
        let (count, bytes) = (self.value(COUNT), self.value(BYTES));
        let mut text = format!("{COUNT}={count},{BYTES}={bytes}");
        let others = self.0.iter();
        let mut others = others
            .filter(|(key, _)| ![COUNT, BYTES].contains(&key.as_str()))
            .peekable();
        if others.peek().is_some() {
            text.push('=');
        }
        for (key, value) in others {
            text.push_str(&format!(";{key}={value}"));
        }
        text
    }

    /// Prints a warning for each limit below the present value.
    fn warn(&self, stats: &Self, output: &Output) {
        for (name, soft, hard) in [(COUNT, COUNT, COUNT_HARD), (BYTES, BYTES, BYTES_HARD)] {
            let present = stats.value(name);
            let is_below = |limit| limit > -1 && limit < present;
            if is_below(self.value(soft)) || is_below(self.value(hard)) {
                output.line(&format!(
                    "[Warning]: the {name} quota you create is less than the existing {name}:{present}"
                ));
            }
        }
    }
}

async fn read(client: &Client, path: &str) -> Result<Track, Failure> {
    let data = client.get_data(path).await;
    let data = data.map_err(|error| Failure::of(&error, path))?;
    Track::parse(data.as_bytes())
}

/// `listquota`.
pub(crate) async fn list(client: &Client, output: &Output, path: &str) -> Result<(), Failure> {
    let limits = limits_path(path);
    output.error(&format!("absolute path is {limits}"));
    for (name, at) in [("quota", limits), ("stat", stats_path(path))] {
        match client.get_data(&at).await {
            Ok(data) => {
                let track = Track::parse(data.as_bytes())?;
                output.line(&format!("Output {name} for {path} {}", track.text()));
            }
            Err(error) if error.is(ErrorCode::NoNode) => {
                output.error(&format!("quota for {path} does not exist."));
                break;
            }
            Err(error) => return Err(Failure::of(&error, &at)),
        }
    }
    Ok(())
}

/// `delquota`: deletes the quota of a path, or some of its limits.
pub(crate) async fn delete(
    client: &Client,
    output: &Output,
    parsed: &Parsed,
    path: &str,
) -> Result<(), Failure> {
    match try_delete(client, output, parsed, path).await {
        Err((error, _)) if error.is(ErrorCode::NoNode) => {
            output.error(&format!("quota for {path} does not exist."));
            Ok(())
        }
        Err((error, at)) => Err(Failure::of(&error, &at)),
        Ok(outcome) => outcome,
    }
}

type Refused = (Error, String);

async fn try_delete(
    client: &Client,
    output: &Output,
    parsed: &Parsed,
    path: &str,
) -> Result<Result<(), Failure>, Refused> {
    let limits = limits_path(path);
    let at = |path: &str| {
        let path = path.to_owned();
        move |error| (error, path)
    };
    if client.exists(&limits).await.map_err(at(&limits))?.is_none() {
        output.line(&format!("Quota does not exist for {path}"));
        return Ok(Ok(()));
    }
    let data = client.get_data(&limits).await.map_err(at(&limits))?;
    let mut track = match Track::parse(data.as_bytes()) {
        Ok(track) => track,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut is_some = false;
    for (option, key) in KEYS {
        if parsed.has(option) {
            track.set(key, -1);
            is_some = true;
        }
    }
    if is_some {
        let text = track.text();
        let set = client.set_data(&limits, text.as_bytes(), None).await;
        set.map_err(at(&limits))?;
        return Ok(Ok(()));
    }
    let mut parent = format!("{ROOT}{path}");
    let names = client.child_names(&parent).await.map_err(at(&parent))?;
    for name in names.iter() {
        let child = format!("{parent}/{name}");
        client.delete(&child, None).await.map_err(at(&child))?;
    }
    // The parents that have no other child.
    while parent != ROOT {
        let names = client.child_names(&parent).await.map_err(at(&parent))?;
        if !names.is_empty() {
            break;
        }
        client.delete(&parent, None).await.map_err(at(&parent))?;
        parent.truncate(parent.rfind('/').unwrap_or(0));
    }
    Ok(Ok(()))
}

/// `setquota`: creates the quota of a path, or changes its limits.
pub(crate) async fn set(
    connection: &mut Connection,
    output: &Output,
    parsed: &Parsed,
    path: &str,
) -> Result<(), Failure> {
    if path.starts_with(ROOT) {
        output.error(&format!("cannot set a quota under the path: {ROOT}"));
        return Ok(());
    }
    let mut quota = Track::default();
    for (option, key) in KEYS {
        let Some(text) = parsed.value(option) else {
            continue;
        };
        let is_count = [COUNT, COUNT_HARD].contains(&key);
        let parsed = if is_count {
            text.parse::<i32>().ok().map(i64::from)
        } else {
            text.parse::<i64>().ok()
        };
        match parsed {
            Some(value) if value > 0 || value == 0 && !is_count => quota.set(key, value),
            Some(_) if is_count => {
                output.error("the num quota must be greater than zero");
                return Ok(());
            }
            Some(_) => {
                output.error("the bytes quota must be greater than or equal to zero");
                return Ok(());
            }
            None => {
                output.error("NumberFormatException happens when parsing the option value");
                return Ok(());
            }
        }
    }
    let failed = |error: Error, path: &str| Failure::of(&error, path);
    let stat = connection.client.exists(path).await;
    if stat.map_err(|error| failed(error, path))?.is_none() {
        return Err(Failure::from(format!("{path} does not exist.")));
    }
    check_below(connection, path).await?;
    check_above(&connection.client, path).await?;
    let client = &connection.client;
    create_parents(client, path).await?;
    let (limits, stats) = (limits_path_created(path), stats_path_created(path));
    let exists = client.exists(&limits).await;
    if exists.map_err(|error| failed(error, &limits))?.is_none() {
        for key in [COUNT, BYTES, COUNT_HARD, BYTES_HARD] {
            let value = quota.value(key);
            quota.set(key, value);
        }
        let mut none = Track::default();
        none.set(COUNT, 0);
        none.set(BYTES, 0);
        for (path, track) in [(&limits, &quota), (&stats, &none)] {
            let text = track.text();
            let created = client.create(path, text.as_bytes(), CreateMode::Persistent);
            created.await.map_err(|error| failed(error, path))?;
        }
        let (limits, stats) = (read(client, &limits).await?, read(client, &stats).await?);
        limits.warn(&stats, output);
        return Ok(());
    }
    let mut track = read(client, &limits).await?;
    for (key, value) in &quota.0 {
        track.set(key, *value);
    }
    track.warn(&read(client, &stats).await?, output);
    let text = track.text();
    let set = client.set_data(&limits, text.as_bytes(), None).await;
    set.map(drop).map_err(|error| failed(error, &limits))
}

/// The quota of the root is at [`ROOT`] itself.
fn limits_path_created(path: &str) -> String {
    limits_path(path.trim_end_matches('/'))
}

fn stats_path_created(path: &str) -> String {
    stats_path(path.trim_end_matches('/'))
}

/// Refuses a quota above another one.
async fn check_below(connection: &mut Connection, path: &str) -> Result<(), Failure> {
    let root = format!("{ROOT}{path}");
    match connection.client.get_data(&root).await {
        Ok(_) => {}
        Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
        Err(error) => return Err(Failure::of(&error, &root)),
    }
    let mut walk = Walk::new(&root, false);
    while let Some(paths) = walk.next(connection).await? {
        for at in paths {
            if let Some(owner) = at.strip_suffix(LIMITS).and_then(|at| at.strip_suffix('/'))
                && owner != root
            {
                return Err(Failure::from(format!(
                    "{path} has a child {} which has a quota",
                    &owner[ROOT.len()..]
                )));
            }
        }
    }
    Ok(())
}

/// Refuses a quota below another one.
async fn check_above(client: &Client, path: &str) -> Result<(), Failure> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    for end in ends.filter(|end| *end > 0) {
        let parent = &path[..end];
        let at = format!("{ROOT}{parent}");
        match client.child_names(&at).await {
            Ok(names) if names.is_empty() => return Ok(()),
            Ok(names) if names.iter().any(|name| name == LIMITS) => {
                return Err(Failure::from(format!(
                    "{path} has a parent {parent} which has a quota"
                )));
            }
            Ok(_) => {}
            Err(error) if error.is(ErrorCode::NoNode) => return Ok(()),
            Err(error) => return Err(Failure::of(&error, &at)),
        }
    }
    Ok(())
}

/// Creates the znodes above the limits.
async fn create_parents(client: &Client, path: &str) -> Result<(), Failure> {
    let whole = format!("{ROOT}{}", path.trim_end_matches('/'));
    let ends = whole.match_indices('/').map(|(at, _)| at);
    for end in ends.filter(|end| *end > 0).chain([whole.len()]) {
        let at = &whole[..end];
        let null = CreateOptions::new(CreateMode::Persistent).null_data(true);
        let exists = client.exists(at).await;
        if exists.map_err(|error| Failure::of(&error, at))?.is_some() {
            continue;
        }
        match client.create(at, b"", null).await {
            Ok(_) => {}
            Err(error) if error.is(ErrorCode::NodeExists) => {}
            Err(error) => return Err(Failure::of(&error, at)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn track_is_read_and_written_as_zookeeper_does() {
        for text in [
            "count=5,bytes=-1",
            "count=-1,bytes=-1=;byteHardLimit=7;countHardLimit=-1",
        ] {
            assert_eq!(Track::parse(text.as_bytes()).unwrap().text(), text);
        }
        assert_eq!(Track::parse(b"").unwrap().text(), "count=-1,bytes=-1");
        assert!(Track::parse(b"count").is_err());
        assert!(Track::parse(b"count=x").is_err());
    }
}
