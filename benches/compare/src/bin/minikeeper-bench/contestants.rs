//! The contestants: locks with the servers under them.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use minikeeper_bench::{
    Error,
    embedded::Embedded,
    peers::{
        Kind, LockUnderTest, Promises,
        curator::{Curator, CuratorLock},
        recipes::{Algorithm, Reach, Recipe},
    },
    process,
    relay::{Relay, Wire},
    report::Workload,
};

/// The session or lease timeout of runs in which no contender dies.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// With more contenders that poll, all the time goes into failed tries.
pub(crate) const POLLERS_MAX: u32 = 32;

/// More clients would need more threads than one JVM can make use of.
const CURATORS_MAX: u32 = 128;

/// Makes a lock on servers at these addresses, with this session or lease time-out.
pub(crate) type Make = Box<dyn Fn(&[SocketAddr], Duration) -> Box<dyn LockUnderTest>>;

/// A Java process with contenders, and a relay that counts the traffic from it to the server.
pub(crate) struct Java {
    pub(crate) curator: RefCell<Curator>,
    pub(crate) relay: Relay,
}

/// A lock that takes part.
pub(crate) struct Contestant {
    pub(crate) make: Make,
    /// The contenders that are measured if those in this process are not quick enough.
    pub(crate) java: Option<Rc<Java>>,
    pub(crate) addrs: Vec<SocketAddr>,
    pub(crate) wire: Wire,
    pub(crate) cpu: Cpu,
    /// The shortest session or lease time-out it can have; `None` if no time-out frees a dead
    /// holder's lock.
    pub(crate) shortest: Option<Duration>,
    /// The largest number of contenders it runs with.
    pub(crate) contenders_max: u32,
    /// Whether it differs from another contestant in only one respect, which one size shows.
    pub(crate) is_variant: bool,
    /// The number of cores its contenders may use.
    pub(crate) client_cores: f64,
}

/// The source of the server's CPU time.
#[derive(Clone)]
pub(crate) enum Cpu {
    /// A server in this process.
    Embedded(Rc<Embedded>),
    /// Processes.
    Processes {
        /// The server's name and version.
        about: (String, String),
        pids: Vec<u32>,
        /// The owner that keeps them running.
        _running: Rc<dyn std::any::Any>,
    },
    /// It cannot be told apart from the contenders' CPU time.
    Unknown,
}

impl Cpu {
    pub(crate) fn ns(&self) -> Result<Option<u64>, Error> {
        match self {
            Self::Embedded(server) => server.cpu_ns().map(Some),
            Self::Processes { pids, .. } => {
                let mut sum = 0;
                for pid in pids {
                    sum += process::cpu_ns(*pid)?;
                }
                Ok(Some(sum))
            }
            Self::Unknown => Ok(None),
        }
    }
}

impl Contestant {
    /// The lock on its servers, reached directly.
    fn lock(&self) -> Box<dyn LockUnderTest> {
        (self.make)(&self.addrs, LONG)
    }

    /// Its name in tables.
    pub(crate) fn name(&self) -> String {
        self.lock().name()
    }

    pub(crate) fn promises(&self) -> Promises {
        self.lock().promises()
    }

    pub(crate) fn kind(&self) -> Kind {
        self.lock().kind()
    }

    /// Whether this workload can be run on it.
    pub(crate) fn takes(&self, workload: Workload) -> bool {
        let (kind, contenders) = match workload {
            Workload::Cycle => return true,
            Workload::HandOver(contenders) | Workload::Saturated(contenders) => {
                (Kind::Mutex, contenders)
            }
            // Needs a wire on which traffic is counted or cut.
            Workload::Herd(_) | Workload::Recovery if self.addrs.is_empty() => return false,
            Workload::Herd(contenders) | Workload::OpenLoop { contenders, .. } => {
                (Kind::Mutex, contenders)
            }
            Workload::Recovery => (Kind::Mutex, 2),
            Workload::ReadWrite { contenders, .. } => (Kind::ReadWrite, contenders),
            Workload::Semaphore { contenders, leases } => (Kind::Semaphore(leases), contenders),
        };
        let is_shown = !self.is_variant || contenders == 8;
        self.kind() == kind && contenders <= self.contenders_max && is_shown
    }
}

/// This project's recipes and hand-written locks on a server with ZooKeeper's protocol.
pub(crate) fn recipes(
    server: &str,
    durability: &'static str,
    addr: SocketAddr,
    cpu: &Cpu,
    shortest: Duration,
) -> Vec<Contestant> {
    [
        Algorithm::Mutex,
        Algorithm::MutexDropped,
        Algorithm::CuratorExact,
        Algorithm::Sequential,
        Algorithm::Herd,
        Algorithm::Polling,
        Algorithm::ReadWrite,
        Algorithm::Semaphore(3),
    ]
    .into_iter()
    .map(|algorithm| {
        let server = server.to_owned();
        Contestant {
            make: Box::new(move |addrs, session_timeout| {
                Box::new(Recipe {
                    server: server.clone(),
                    durability,
                    algorithm,
                    reach: Reach::Tcp(addrs[0]),
                    session_timeout,
                })
            }),
            java: None,
            addrs: vec![addr],
            wire: Wire::ZooKeeper,
            cpu: cpu.clone(),
            shortest: Some(shortest),
            client_cores: 1.0,
            is_variant: algorithm == Algorithm::MutexDropped,
            contenders_max: match algorithm {
                Algorithm::Polling => POLLERS_MAX,
                Algorithm::Herd => 128,
                _ => u32::MAX,
            },
        }
    })
    .collect()
}

/// Curator's recipes; one Java process has the contenders of all of them.
pub(crate) fn curators(
    mutex: &CuratorLock,
    java: Java,
    cpu: &Cpu,
    shortest: Duration,
) -> Vec<Contestant> {
    let java = Rc::new(java);
    [Kind::Mutex, Kind::ReadWrite, Kind::Semaphore(3)]
        .into_iter()
        .map(|kind| {
            let lock = CuratorLock {
                kind,
                ..mutex.clone()
            };
            Contestant {
                make: Box::new(move |addrs, session_timeout| {
                    Box::new(CuratorLock {
                        addr: addrs[0],
                        session_timeout,
                        ..lock.clone()
                    })
                }),
                java: Some(Rc::clone(&java)),
                addrs: vec![mutex.addr],
                wire: Wire::ZooKeeper,
                cpu: cpu.clone(),
                shortest: Some(shortest),
                contenders_max: CURATORS_MAX,
                is_variant: false,
                client_cores: mutex.pin.generator_cores(),
            }
        })
        .collect()
}

/// The mutex without a socket: contenders and server share a thread.
pub(crate) fn in_process(server: Arc<minikeeper::Server>) -> Contestant {
    Contestant {
        make: Box::new(move |_, session_timeout| {
            Box::new(Recipe {
                server: "minikeeper in process".into(),
                durability: "nothing",
                algorithm: Algorithm::Mutex,
                reach: Reach::InProcess(Arc::clone(&server)),
                session_timeout,
            })
        }),
        java: None,
        addrs: Vec::new(),
        wire: Wire::ZooKeeper,
        cpu: Cpu::Unknown,
        shortest: None,
        contenders_max: u32::MAX,
        is_variant: false,
        client_cores: 1.0,
    }
}
