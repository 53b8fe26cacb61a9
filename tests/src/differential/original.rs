//! ZooKeeper in a Java process, controlled by commands: `tests/differential/original`.

use std::{
    ffi::OsString,
    io::{BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use minikeeper_protocol::SessionId;
use minikeeper_test_kit::requests::LOGINS;

use super::{
    known::Version,
    server::{CHECK_MS, Server, TICK_MS, TIMEOUT_MAX_MS, TIMEOUT_MIN_MS},
};

/// A live ZooKeeper. Its process exits when its stdin closes, and so with this process.
#[derive(Debug)]
pub struct Original {
    process: Child,
    /// The stdin of the process; `None` once it is to exit.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    version: Version,
}

impl Original {
    /// Starts the process with this Java class path. `data` is the directory for its data.
    ///
    /// # Errors
    /// When Java does not start, or does not find ZooKeeper in the class path.
    pub fn start(class_path: &str, data: &Path, properties: &[&str]) -> Result<Self, String> {
        let (_, super_digest) = LOGINS[2];
        let superuser =
            format!("-Dzookeeper.DigestAuthenticationProvider.superDigest={super_digest}");
        let mut process = Command::new(java())
            .args(["-Xmx512m", "-XX:+UseSerialGC"])
            // The tests check the protocol, not durability. One thread reads and writes sockets,
            // which saves task switches.
            .args([
                "-Dzookeeper.forceSync=no",
                "-Dzookeeper.preAllocSize=64",
                "-Dzookeeper.snapCount=100000000",
                "-Dzookeeper.nio.numSelectorThreads=1",
                "-Dzookeeper.nio.numWorkerThreads=0",
                "-Dorg.apache.logging.log4j.level=OFF",
            ])
            .arg(superuser)
            .args(properties)
            .args(["-cp", class_path, "Original"])
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start java: {error}"))?;
        let input = process.stdin.take().expect("stdin is a pipe");
        let output = process.stdout.take().expect("stdout is a pipe");
        let mut original = Self {
            process,
            input: Some(input),
            output: BufReader::new(output),
            version: Version::new(0, 0, 0),
        };
        let line = original.line()?;
        original.version = line
            .strip_prefix("version ")
            .and_then(Version::parse)
            .ok_or_else(|| format!("ZooKeeper printed {line:?} instead of its version"))?;
        Ok(original)
    }

    /// The version of ZooKeeper.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        match read {
            Ok(1..) => Ok(line.trim_end().to_owned()),
            Ok(0) => Err("ZooKeeper has exited".to_owned()),
            Err(error) => Err(format!("cannot read from ZooKeeper: {error}")),
        }
    }

    fn command(&mut self, command: &str) -> Result<Vec<String>, String> {
        let input = self.input.as_mut().ok_or("ZooKeeper is exiting")?;
        writeln!(input, "{command}")
            .map_err(|error| format!("cannot write to ZooKeeper: {error}"))?;
        let line = self.line()?;
        let mut words = line.split(' ').map(str::to_owned);
        match words.next().as_deref() {
            Some("ok" | "port") => Ok(words.collect()),
            _ => Err(format!("ZooKeeper replied to {command:?} with {line:?}")),
        }
    }
}

fn java() -> OsString {
    let home = std::env::var_os("JAVA_HOME");
    home.map_or_else(
        || "java".into(),
        |home| Path::new(&home).join("bin/java").into_os_string(),
    )
}

fn sessions(words: &[String]) -> Result<Vec<SessionId>, String> {
    words
        .iter()
        .map(|hex| i64::from_str_radix(hex, 16).map(SessionId))
        .collect::<Result<_, _>>()
        .map_err(|_| format!("invalid session ids {words:?}"))
}

impl Server for Original {
    fn name(&self) -> String {
        format!("ZooKeeper {}", self.version)
    }

    fn fresh(&mut self) -> Result<SocketAddr, String> {
        let answer = self.command(&format!(
            "fresh {TICK_MS} {TIMEOUT_MIN_MS} {TIMEOUT_MAX_MS} {CHECK_MS}"
        ))?;
        let port = answer.first().and_then(|port| port.parse().ok());
        port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            .ok_or_else(|| format!("invalid port {answer:?}"))
    }

    fn zxid(&mut self) -> Result<i64, String> {
        let answer = self.command("zxid")?;
        let zxid = answer.first().and_then(|zxid| zxid.parse().ok());
        zxid.ok_or_else(|| format!("invalid zxid {answer:?}"))
    }

    fn expire(&mut self, session: SessionId) -> Result<bool, String> {
        let answer = self.command(&format!("expire {:x}", session.0))?;
        Ok(answer.len() > 1)
    }

    fn advance(&mut self, by_ms: u64) -> Result<Vec<SessionId>, String> {
        let answer = self.command(&format!("advance {by_ms}"))?;
        sessions(&answer[1..])
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        // Closes its stdin, so that it removes its data and exits.
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
