//! The same on other clients: the crate zookeeper-client, and Curator in Java.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use minikeeper_benches::{Error, IoContext as _};
use zookeeper_client::{Acls, Client, LockOptions, LockPrefix};

use crate::measure::{Measure, Timer, text};

pub(crate) async fn connect(addr: SocketAddr) -> Result<Client, Error> {
    Client::connect(&addr.to_string()).await.map_err(text)
}

/// The crate's lock, under Curator's names, taken and given back. It gives back without waiting;
/// here its znode is deleted and that is waited for, as with the others.
pub(crate) async fn cycle(client: &Client, count: u32) -> Result<Measure, Error> {
    let mut timer = Timer::start(count)?;
    for _ in 0..count {
        timer.begin();
        let prefix = LockPrefix::new_curator("/bench/zookeeper-client", "lock-").map_err(text)?;
        let parents = zookeeper_client::CreateMode::Container.with_acls(Acls::anyone_all());
        let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents);
        let options = options.map_err(text)?;
        let lock = client.lock(prefix, b"", options).await.map_err(text)?;
        let path = lock.lock_path().to_owned();
        std::mem::forget(lock);
        client.delete(&path, None).await.map_err(text)?;
        timer.end();
    }
    timer.measure()
}

/// A Java process that takes a lock with Curator.
pub(crate) struct Curator {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Curator {
    pub(crate) fn start(
        mut java: Command,
        classpath: &str,
        addr: SocketAddr,
    ) -> Result<Self, Error> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/java/CuratorCycle.java");
        java.args(["-XX:+UseSerialGC", "-cp", classpath, source])
            .arg(addr.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = java.spawn().context(|| "cannot start java".into())?;
        let orders = child.stdin.take();
        let stdout = child.stdout.take().expect("standard output was piped");
        Ok(Self {
            child,
            orders,
            answers: BufReader::new(stdout),
        })
    }

    /// So many locks; this process waits meanwhile.
    pub(crate) fn cycle(&mut self, count: u32) -> Result<Measure, Error> {
        let failed = || "cannot speak with java; does the class path hold Curator?".to_owned();
        let orders = self.orders.as_mut().expect("it is open until the end");
        writeln!(orders, "{count}").context(failed)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).context(failed)?;
        let p50_ns = line
            .trim()
            .parse()
            .map_err(|_| Error::Unexpected(failed()))?;
        Ok(Measure {
            p50_ns,
            cpu_ns: 0.0,
        })
    }
}

impl Drop for Curator {
    fn drop(&mut self) {
        // It ends when there are no more orders.
        drop(self.orders.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
