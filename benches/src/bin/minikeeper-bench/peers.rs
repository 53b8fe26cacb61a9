//! The other servers, started if they are installed, and their locks.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, time::Duration};

use minikeeper_benches::{
    Error,
    peers::{
        Promises,
        curator::{self, Curator},
        zookeeper_client::ZookeeperClient,
    },
    process::Pin,
    relay::Wire,
    report::NotRun,
    servers::zookeeper::{Setup, ZooKeeper},
};

use crate::contestants::{self, Contestant, Cpu, LONG, Takes};

/// More clients than that are more threads than one JVM has use for.
const CURATORS_MAX: u32 = 128;

/// What was started, and what was not.
pub(crate) struct Peers<'a> {
    pin: Pin,
    not_run: &'a mut Vec<NotRun>,
    pub(crate) contestants: Vec<Contestant>,
    pub(crate) servers: Vec<(String, String)>,
}

impl<'a> Peers<'a> {
    pub(crate) const fn new(pin: Pin, not_run: &'a mut Vec<NotRun>) -> Self {
        Self {
            pin,
            not_run,
            contestants: Vec::new(),
            servers: Vec::new(),
        }
    }

    /// What was started, or a note why not.
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

    /// Java Curator on a server.
    pub(crate) fn curator(
        &mut self,
        server: &str,
        addr: SocketAddr,
        cpu: &Cpu,
        durability: &'static str,
        class_path: Option<&str>,
    ) {
        let started = curator::curator_class_path(class_path)
            .and_then(|class_path| Curator::start(self.pin, &class_path, addr, server, LONG));
        let Some(curator) = self.started(&format!("Curator on {server}"), started) else {
            return;
        };
        let promises: Promises = curator::promises(durability);
        self.contestants.push(Contestant {
            takes: Takes::Curator(Box::new(RefCell::new(curator)), promises),
            addrs: vec![addr],
            wire: Wire::ZooKeeper,
            cpu: cpu.clone(),
            shortest: None,
            contenders_max: CURATORS_MAX,
            is_variant: false,
            client_cores: self.pin.generator_cores(),
        });
    }

    /// ZooKeeper, in two setups, with all locks that it can be had with.
    pub(crate) fn zookeepers(&mut self, class_path: Option<&str>) {
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
            self.servers.push((what, zookeeper.version().to_owned()));
            let cpu = Cpu::Processes {
                pids: vec![zookeeper.pid()],
                _running: Rc::new(zookeeper),
            };
            self.contestants.extend(contestants::recipes(
                &name, durability, addr, &cpu, shortest,
            ));
            let server = name.clone();
            self.contestants.push(Contestant {
                takes: Takes::Here(Box::new(move |addrs, session_timeout| {
                    Box::new(ZookeeperClient {
                        server: server.clone(),
                        durability,
                        addr: addrs[0],
                        session_timeout,
                    })
                })),
                addrs: vec![addr],
                wire: Wire::ZooKeeper,
                cpu: cpu.clone(),
                shortest: Some(shortest),
                contenders_max: u32::MAX,
                is_variant: false,
                client_cores: 1.0,
            });
            self.curator(&name, addr, &cpu, durability, class_path);
        }
    }

    /// Redis, etcd and MariaDB.
    #[cfg(not(feature = "peers"))]
    #[expect(clippy::unused_async, reason = "with the feature it waits for servers")]
    pub(crate) async fn others(&mut self) {
        self.not_run.push(NotRun {
            what: "Redis, etcd, MariaDB".into(),
            why: "this program was built without their clients: install the servers with \
                  benches/install-peers, then run cargo with --features peers"
                .into(),
        });
    }
}

#[cfg(feature = "peers")]
#[path = "others.rs"]
mod others;
