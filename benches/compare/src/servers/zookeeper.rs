//! Apache ZooKeeper on loopback, one process (standalone), from Debian's package `zookeeper`.
//!
//! Two setups bound what ZooKeeper can do: as a user gets it, and without anything that could slow
//! it down.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use super::{ScratchFolder, program};
use crate::{
    Error, IoContext as _,
    client::{TRY_LIMIT, dial},
    process::{Pin, Server, free_port},
};

/// The folder in which Debian puts the jars.
pub(crate) const JARS: &str = "/usr/share/java";

/// The shortest session that [`Setup::Kindest`] grants: two ticks.
pub const KINDEST_SESSION_MIN: Duration = Duration::from_millis(400);

/// The longest session that [`Setup::Kindest`] grants. Twenty ticks, the default, would be 4 s.
pub const KINDEST_SESSION_MAX: Duration = Duration::from_secs(60);

/// How often a start is tried if the server ends at once: another process may have taken the free
/// port in between.
const STARTS_MAX: u32 = 3;

/// The settings ZooKeeper runs with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setup {
    /// Debian's example settings and Java's own: a tick of 2,000 ms (sessions of 4 to 40 s), every
    /// change forced to disk before the reply. Three things differ from what is shipped:
    ///
    /// - `maxClientCnxns` is 0, because all contenders connect from one address, and the default is
    ///   60;
    /// - the admin server is off, because its fixed port 8080 may be taken;
    /// - nothing is logged, while Debian's settings write a line for each session to a file.
    ///
    /// The data is in the temporary folder, on a disk if that folder is (`TMPDIR` names another).
    /// Java chooses heap and collector by the memory and cores it sees: on one core, a serial
    /// collector.
    AsShipped,
    /// Everything for speed on few cores, nothing for durability:
    ///
    /// - data and log in memory, nothing forced to disk, no snapshot in the middle of a run;
    /// - no digest of the tree with every change;
    /// - the selector thread reads and writes sockets itself, which saves a hand-off each way;
    /// - a heap that does not grow, a collector without its own thread, and a young generation so
    ///   large that few collections happen;
    /// - a tick of 200 ms, which allows sessions of 400 ms; sessions of up to 60 s remain possible.
    ///
    /// The log grows in memory, by a few hundred bytes for each acquire and release.
    Kindest,
}

impl Setup {
    /// Its name in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::AsShipped => "as shipped",
            Self::Kindest => "kindest",
        }
    }

    /// What survives a crash of the server.
    #[must_use]
    pub const fn durability(self) -> &'static str {
        match self {
            Self::AsShipped => "on disk before the reply",
            Self::Kindest => "in memory only",
        }
    }

    /// The interval between checks of sessions; a session ends at the first tick after its
    /// time-out.
    #[must_use]
    pub const fn tick(self) -> Duration {
        match self {
            Self::AsShipped => Duration::from_secs(2),
            Self::Kindest => Duration::from_millis(200),
        }
    }

    const fn java_options(self) -> &'static [&'static str] {
        match self {
            Self::AsShipped => &[],
            Self::Kindest => &[
                "-XX:+UseSerialGC",
                "-Xms256m",
                "-Xmx256m",
                "-Xmn160m",
                "-XX:+AlwaysPreTouch",
                "-Dzookeeper.forceSync=no",
                "-Dzookeeper.snapCount=10000000",
                "-Dzookeeper.digest.enabled=false",
                "-Dzookeeper.nio.numSelectorThreads=1",
                "-Dzookeeper.nio.numWorkerThreads=0",
            ],
        }
    }

    fn folder(self) -> Result<ScratchFolder, Error> {
        match self {
            Self::AsShipped => ScratchFolder::new("zookeeper"),
            Self::Kindest => ScratchFolder::in_memory("zookeeper"),
        }
    }

    fn configuration(self, data: &Path, port: u16) -> String {
        let mut text = format!(
            "tickTime={}\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={port}\n\
             clientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n",
            self.tick().as_millis(),
            data.display(),
        );
        if self == Self::Kindest {
            text += &format!(
                "minSessionTimeout={}\nmaxSessionTimeout={}\n",
                KINDEST_SESSION_MIN.as_millis(),
                KINDEST_SESSION_MAX.as_millis(),
            );
        }
        text
    }
}

/// A running ZooKeeper; stopped when dropped, and its data removed.
#[derive(Debug)]
pub struct ZooKeeper {
    // Before the folder: dropped first, so the server stops before its data is removed.
    server: Server,
    _folder: ScratchFolder,
    setup: Setup,
    version: String,
}

impl ZooKeeper {
    /// Starts one on a free port and waits until it grants a session.
    ///
    /// # Errors
    /// If Java or the jars are missing (the text says how to install them), or if the server grants
    /// no session.
    pub fn start(setup: Setup, pin: Pin) -> Result<Self, Error> {
        let java = program("java")?;
        // The jar's manifest names its dependencies. Without a logger it prints warnings.
        let class_path = class_path(Path::new(JARS), &["zookeeper", "slf4j-nop"])?;
        for attempt in 1.. {
            let folder = setup.folder()?;
            let port = free_port()?;
            let file = folder.path().join("zoo.cfg");
            fs::write(&file, setup.configuration(folder.path(), port))
                .context(|| format!("cannot write {:?}", file.display()))?;
            let mut command = pin.server(&java);
            command
                .args(setup.java_options())
                .args(["-cp", &class_path])
                .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
                .arg(&file);
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            match Server::start_at(command, addr) {
                Err(Error::Unexpected(_)) if attempt < STARTS_MAX => {}
                Err(error) => return Err(error),
                Ok(server) => {
                    return Ok(Self {
                        version: version(addr)?,
                        server,
                        _folder: folder,
                        setup,
                    });
                }
            }
        }
        unreachable!("the last start returns")
    }

    /// The address it listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.pid.expect("it was started here")
    }

    /// Its settings.
    #[must_use]
    pub const fn setup(&self) -> Setup {
        self.setup
    }

    /// The version it reports: `3.8.0`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its name in tables: `ZooKeeper 3.8.0 kindest`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("ZooKeeper {} {}", self.version, self.setup.text())
    }

    /// Asks it to end and waits.
    ///
    /// # Errors
    /// If it does not end in time; it is then killed.
    pub fn stop(mut self) -> Result<(), Error> {
        self.server.stop().map(drop)
    }
}

/// Returns the class path of these jars in a folder.
pub(crate) fn class_path(folder: &Path, names: &[&str]) -> Result<String, Error> {
    let mut path = String::new();
    for name in names {
        let jar = folder.join(format!("{name}.jar"));
        if !jar.is_file() {
            return Err(Error::Setup(format!(
                "jar {:?} does not exist; install it with: benches/compare/install-peers",
                jar.display()
            )));
        }
        if !path.is_empty() {
            path.push(':');
        }
        path += &jar.to_string_lossy();
    }
    Ok(path)
}

/// Asks for the version with the command `srvr`, which the default settings allow.
fn version(addr: SocketAddr) -> Result<String, Error> {
    let failed = || format!("cannot ask the ZooKeeper at {addr} for its version");
    let mut stream = dial(addr)?;
    stream.set_read_timeout(Some(TRY_LIMIT)).context(failed)?;
    stream.write_all(b"srvr").context(failed)?;
    let mut reply = String::new();
    // Enough for its ten lines, and a limit in case another server listens there.
    stream
        .take(4_096)
        .read_to_string(&mut reply)
        .context(failed)?;
    version_in(&reply).ok_or_else(|| {
        Error::Unexpected(format!(
            "{addr} does not reply to srvr like ZooKeeper: {reply:?}"
        ))
    })
}

/// `Zookeeper version: 3.8.0--1, built on ...`: the number is followed by a dash and the commit.
fn version_in(reply: &str) -> Option<String> {
    let rest = reply.split("ookeeper version: ").nth(1)?;
    let number = rest.split(['-', ',', ' ', '\n']).next()?;
    (!number.is_empty()).then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_found_in_the_reply_to_srvr() {
        let reply = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-06-16\nLatency";
        assert_eq!(version_in(reply).as_deref(), Some("3.8.0"));
        let reply = "Zookeeper version: 3.9.5-abc, built on 2026-01-01";
        assert_eq!(version_in(reply).as_deref(), Some("3.9.5"));
        assert_eq!(version_in("This ZooKeeper instance is not serving"), None);
    }

    #[test]
    fn missing_jar_is_named_with_what_installs_it() {
        let error = class_path(Path::new("/nowhere"), &["zookeeper"]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"/nowhere/zookeeper.jar\""), "{text}");
        assert!(text.contains("benches/compare/install-peers"), "{text}");
    }
}
