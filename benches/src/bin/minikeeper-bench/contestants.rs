//! Who takes part: locks with the servers under them.

use std::{net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use minikeeper_benches::{
    Error,
    embedded::Embedded,
    peers::{
        Kind, LockUnderTest,
        recipes::{Algorithm, Reach, Recipe},
    },
    process,
    relay::Wire,
    report::Workload,
};

/// The session or lease time-out of runs in which nobody dies.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Makes a lock on servers at these addresses, with this session or lease time-out.
pub(crate) type Make = Box<dyn Fn(&[SocketAddr], Duration) -> Box<dyn LockUnderTest>>;

/// A lock that takes part.
pub(crate) struct Contestant {
    pub(crate) make: Make,
    pub(crate) addrs: Vec<SocketAddr>,
    pub(crate) wire: Wire,
    pub(crate) cpu: Cpu,
    /// The shortest session or lease time-out it can have; `None`: a dead holder's lock is not freed
    /// by time.
    pub(crate) shortest: Option<Duration>,
    /// The most contenders it is run with.
    pub(crate) contenders_max: u32,
}

/// Whose CPU time is the server's.
#[derive(Clone)]
pub(crate) enum Cpu {
    /// A server in this process.
    Embedded(Rc<Embedded>),
    /// Processes.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "peers have them"))]
    Processes(Vec<u32>),
    /// It cannot be told from the contenders'.
    Unknown,
}

impl Cpu {
    pub(crate) fn ns(&self) -> Result<Option<u64>, Error> {
        match self {
            Self::Embedded(server) => server.cpu_ns().map(Some),
            Self::Processes(pids) => {
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
    pub(crate) fn lock(&self) -> Box<dyn LockUnderTest> {
        (self.make)(&self.addrs, LONG)
    }

    /// Whether this workload can be run on it.
    pub(crate) fn takes(&self, workload: Workload) -> bool {
        let (kind, contenders) = match workload {
            Workload::Cycle => return true,
            Workload::HandOver(contenders) | Workload::Saturated(contenders) => {
                (Kind::Mutex, contenders)
            }
            // In one process there is no wire.
            Workload::Herd(contenders) => {
                if self.addrs.is_empty() {
                    return false;
                }
                (Kind::Mutex, contenders)
            }
            Workload::OpenLoop { contenders, .. } => (Kind::Mutex, contenders),
            Workload::Recovery => {
                if self.addrs.is_empty() {
                    return false;
                }
                (Kind::Mutex, 2)
            }
            Workload::ReadWrite { contenders, .. } => (Kind::ReadWrite, contenders),
            Workload::Semaphore { contenders, leases } => (Kind::Semaphore(leases), contenders),
        };
        self.lock().kind() == kind && contenders <= self.contenders_max
    }
}

/// This project's recipes and hand-written locks on a server that speaks ZooKeeper's protocol.
pub(crate) fn recipes(
    server: &str,
    durability: &'static str,
    addr: SocketAddr,
    cpu: &Cpu,
    shortest: Duration,
) -> Vec<Contestant> {
    [
        Algorithm::Mutex,
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
            addrs: vec![addr],
            wire: Wire::ZooKeeper,
            cpu: cpu.clone(),
            shortest: Some(shortest),
            contenders_max: match algorithm {
                // With more, all the time goes into failed tries.
                Algorithm::Herd | Algorithm::Polling => 128,
                _ => u32::MAX,
            },
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
        addrs: Vec::new(),
        wire: Wire::ZooKeeper,
        cpu: Cpu::Unknown,
        shortest: None,
        contenders_max: u32::MAX,
    }
}
