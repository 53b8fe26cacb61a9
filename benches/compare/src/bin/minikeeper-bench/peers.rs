//! The other servers, started if installed, and their locks.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use minikeeper_bench::{
    Error,
    peers::{
        Kind,
        curator::{CuratorLock, Program},
        zookeeper_client::ZookeeperClient,
    },
    process::Pin,
    relay::{Relay, Wire},
    report::NotRun,
    servers::zookeeper::{Setup, ZooKeeper},
};

use crate::contestants::{self, Contestant, Cpu, Java, LONG};

/// The servers that started, and a note on those that did not.
pub(crate) struct Peers<'a> {
    pin: Pin,
    not_run: &'a mut Vec<NotRun>,
    pub(crate) contestants: Vec<Contestant>,
}

impl<'a> Peers<'a> {
    pub(crate) const fn new(pin: Pin, not_run: &'a mut Vec<NotRun>) -> Self {
        Self {
            pin,
            not_run,
            contestants: Vec::new(),
        }
    }

    /// Returns what started; otherwise notes the reason.
    fn started<T>(&mut self, what: &str, started: Result<T, Error>) -> Option<T> {
        match started {
            Ok(started) => Some(started),
            Err(error) => {
                self.not_run.push(NotRun {
                    what: what.to_owned(),
                    why: error.chain(),
                });
                None
            }
        }
    }

    /// Compiles the program for Java Curator, once.
    pub(crate) fn curator_program(&mut self, class_path: Option<&str>) -> Option<Arc<Program>> {
        let compiled = Program::compile(class_path);
        self.started("Curator", compiled).map(Arc::new)
    }

    /// Adds Java Curator on a server.
    pub(crate) fn curator(
        &mut self,
        program: &Arc<Program>,
        server: &str,
        addr: SocketAddr,
        cpu: &Cpu,
        durability: &'static str,
        shortest: Duration,
    ) {
        let mutex = CuratorLock {
            program: Arc::clone(program),
            pin: self.pin,
            server: server.to_owned(),
            durability,
            addr,
            kind: Kind::Mutex,
            session_timeout: LONG,
        };
        let started = mutex.start().and_then(|curator| {
            Ok(Java {
                curator: RefCell::new(curator),
                relay: Relay::start(addr, Wire::ZooKeeper)?,
            })
        });
        if let Some(java) = self.started(&format!("Curator on {server}"), started) {
            let curators = contestants::curators(&mutex, java, cpu, shortest);
            self.contestants.extend(curators);
        }
    }

    /// Adds ZooKeeper in two setups, each with all locks that work on it.
    pub(crate) fn zookeepers(&mut self, program: Option<&Arc<Program>>) {
        for setup in [Setup::Kindest, Setup::AsShipped] {
            let what = format!("ZooKeeper, {}", setup.text());
            let started = ZooKeeper::start(setup, self.pin);
            let Some(zookeeper) = self.started(&what, started) else {
                continue;
            };
            let (name, addr) = (zookeeper.name(), zookeeper.addr());
            let durability = setup.durability();
            let shortest = match setup {
                Setup::Kindest => Duration::from_millis(400),
                Setup::AsShipped => Duration::from_secs(4),
            };
            let cpu = Cpu::Processes {
                about: (what, zookeeper.version().to_owned()),
                pids: vec![zookeeper.pid()],
                _running: Rc::new(zookeeper),
            };
            self.contestants.extend(contestants::recipes(
                &name, durability, addr, &cpu, shortest,
            ));
            let server = name.clone();
            self.contestants.push(Contestant {
                make: Box::new(move |addrs, session_timeout| {
                    Box::new(ZookeeperClient {
                        server: server.clone(),
                        durability,
                        addr: addrs[0],
                        session_timeout,
                    })
                }),
                java: None,
                addrs: vec![addr],
                wire: Wire::ZooKeeper,
                cpu: cpu.clone(),
                shortest: Some(shortest),
                contenders_max: u32::MAX,
                is_variant: false,
                client_cores: 1.0,
            });
            if let Some(program) = program {
                self.curator(program, &name, addr, &cpu, durability, shortest);
            }
        }
    }

    /// Redis, etcd and MariaDB.
    #[cfg(not(feature = "peers"))]
    #[expect(clippy::unused_async, reason = "with the feature it waits for servers")]
    pub(crate) async fn others(&mut self) {
        self.not_run.push(NotRun {
            what: "Redis, etcd, MariaDB".into(),
            why: "this program was built without their clients: install the servers with \
                  benches/compare/install-peers, then run cargo with --features peers"
                .into(),
        });
    }
}

#[cfg(feature = "peers")]
#[path = "others.rs"]
mod others;
