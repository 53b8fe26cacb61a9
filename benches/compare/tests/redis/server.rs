//! The servers themselves.

use minikeeper_bench::{
    process::{Pin, cpu_ns},
    servers::redis::{Keeping, Redis, version},
};

use super::{eye, run, started};

#[test]
fn server_reports_its_version_and_uses_cpu_time() {
    let mut server = started();
    assert!(version().unwrap().contains('.'));
    assert!(cpu_ns(server.pid().unwrap()).unwrap() > 0);
    server.stop().unwrap();
    assert_eq!(server.pid(), None);
    // The port is free again.
    assert!(std::net::TcpStream::connect(server.addr()).is_err());
}

#[test]
fn server_can_be_set_to_keep_every_write() {
    run(async {
        let server = Redis::start(Pin::None, Keeping::EveryWrite).unwrap();
        let mut eye = eye(server.addr()).await;
        let mut command = redis::cmd("CONFIG");
        let kept: Vec<String> = command
            .arg("GET")
            .arg("appendfsync")
            .query_async(&mut eye)
            .await
            .unwrap();
        assert_eq!(kept, ["appendfsync", "always"]);
    });
}
