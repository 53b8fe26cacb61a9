//! Locks that do not use ZooKeeper's protocol.

use std::{net::SocketAddr, rc::Rc, time::Duration};

use minikeeper_bench::{
    peers::{
        LockUnderTest,
        etcd::EtcdLock,
        get_lock::GetLock,
        mysql_table::ResourceLock,
        recipes::POLLING_INTERVAL,
        redis_set::RedisSet,
        redisson::{Lease, Redisson},
        redlock::Redlock,
    },
    relay::Wire,
    servers::{
        Storage, etcd, mariadb,
        redis::{self, Keeping, Redis},
    },
};

use super::Peers;
use crate::contestants::{Contestant, Cpu, POLLERS_MAX};

/// The shortest lease on Redis that its watchdog keeps alive on a busy machine.
const REDIS_LEASE: Duration = Duration::from_millis(600);

/// The number of servers for Redlock.
const INSTANCES: usize = 5;

/// How long one of them may take to reply.
const INSTANCE_LIMIT: Duration = Duration::from_millis(50);

/// etcd raises shorter leases to this.
const ETCD_LEASE: Duration = Duration::from_secs(2);

impl Peers<'_> {
    /// Redis, etcd and MariaDB.
    pub(crate) async fn others(&mut self) {
        self.redis();
        self.redlock();
        self.etcd();
        self.mariadb().await;
    }

    fn add(
        &mut self,
        addrs: Vec<SocketAddr>,
        wire: Wire,
        cpu: &Cpu,
        shortest: Option<Duration>,
        contenders_max: u32,
        make: impl Fn(&[SocketAddr], Duration) -> Box<dyn LockUnderTest> + 'static,
    ) {
        self.contestants.push(Contestant {
            make: Box::new(make),
            java: None,
            addrs,
            wire,
            cpu: cpu.clone(),
            shortest,
            contenders_max,
            is_variant: false,
            client_cores: 1.0,
        });
    }

    fn redis(&mut self) {
        let keeping = Keeping::Nothing;
        let started = Redis::start(self.pin, keeping);
        let Some(redis) = self.started("Redis", started) else {
            return;
        };
        let version = redis::version().unwrap_or_default();
        let server = format!("Redis {version}");
        let (addr, pids) = (redis.addr(), redis.pid().into_iter().collect());
        let cpu = Cpu::Processes {
            about: ("Redis".into(), version),
            pids,
            _running: Rc::new(redis),
        };
        let durability = keeping.text();
        let name = server.clone();
        self.add(
            vec![addr],
            Wire::Redis,
            &cpu,
            Some(REDIS_LEASE),
            u32::MAX,
            move |addrs, lease| {
                Box::new(Redisson {
                    server: name.clone(),
                    durability,
                    addr: addrs[0],
                    lease: Lease::Watched(lease),
                })
            },
        );
        self.add(
            vec![addr],
            Wire::Redis,
            &cpu,
            Some(REDIS_LEASE),
            POLLERS_MAX,
            move |addrs, ttl| {
                Box::new(RedisSet {
                    server: server.clone(),
                    durability,
                    addr: addrs[0],
                    ttl,
                    interval: POLLING_INTERVAL,
                })
            },
        );
    }

    fn redlock(&mut self) {
        let keeping = Keeping::Nothing;
        let started = Redis::start_many(INSTANCES, self.pin, keeping);
        let Some(instances) = self.started("Redlock", started) else {
            return;
        };
        let addrs = instances.iter().map(Redis::addr).collect();
        let pids = instances.iter().filter_map(Redis::pid).collect();
        let cpu = Cpu::Processes {
            about: ("Redis".into(), redis::version().unwrap_or_default()),
            pids,
            _running: Rc::new(instances),
        };
        self.add(
            addrs,
            Wire::Redis,
            &cpu,
            Some(REDIS_LEASE),
            POLLERS_MAX,
            move |addrs, ttl| {
                Box::new(Redlock {
                    server: format!("{INSTANCES} Redis"),
                    durability: keeping.text(),
                    addrs: addrs.to_vec(),
                    ttl,
                    instance_limit: INSTANCE_LIMIT,
                    extensions_max: 0,
                    seed: 1,
                })
            },
        );
    }

    fn etcd(&mut self) {
        for storage in [Storage::Memory, Storage::AsShipped] {
            let started = etcd::start(storage, self.pin);
            let Some(etcd) = self.started("etcd", started) else {
                return;
            };
            let server = format!("etcd {} {}", etcd.version(), storage.text());
            let about = (
                format!("etcd, {}", storage.text()),
                etcd.version().to_owned(),
            );
            let (addr, pids) = (etcd.addr(), etcd.pid().into_iter().collect());
            let cpu = Cpu::Processes {
                about,
                pids,
                _running: Rc::new(etcd),
            };
            self.add(
                vec![addr],
                Wire::Other,
                &cpu,
                Some(ETCD_LEASE),
                u32::MAX,
                move |addrs, lease| {
                    Box::new(EtcdLock {
                        server: server.clone(),
                        durability: storage.durability(),
                        addr: addrs[0],
                        lease_ttl_s: u32::try_from(lease.as_secs()).unwrap_or(u32::MAX),
                    })
                },
            );
        }
    }

    async fn mariadb(&mut self) {
        for storage in [Storage::Memory, Storage::AsShipped] {
            let started = mariadb::start(storage, self.pin);
            let Some(mariadb) = self.started("MariaDB", started) else {
                return;
            };
            // Without Debian's suffix, which does not matter to readers of the report.
            let version = mariadb.version().split('-').next().unwrap_or_default();
            let server = format!("MariaDB {version} {}", storage.text());
            let about = (
                format!("MariaDB, {}", storage.text()),
                mariadb.version().to_owned(),
            );
            let (addr, pids) = (mariadb.addr(), mariadb.pid().into_iter().collect());
            let cpu = Cpu::Processes {
                about,
                pids,
                _running: Rc::new(mariadb),
            };
            let table = ResourceLock::prepare(addr, server.clone(), storage.durability()).await;
            if let Some(table) = self.started("the table on MariaDB", table) {
                self.add(
                    vec![addr],
                    Wire::Other,
                    &cpu,
                    None,
                    POLLERS_MAX,
                    move |addrs, _| Box::new(table.at(addrs[0])),
                );
            }
            // It is in memory with either storage.
            if storage == Storage::Memory {
                self.add(
                    vec![addr],
                    Wire::Other,
                    &cpu,
                    None,
                    u32::MAX,
                    move |addrs, _| {
                        Box::new(GetLock {
                            server: server.clone(),
                            addr: addrs[0],
                        })
                    },
                );
            }
        }
    }
}
