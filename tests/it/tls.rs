//! Clients over TLS, their certificates and permissions.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use minikeeper::Config;
use minikeeper_protocol::{
    Acl, AclList, ConnectRequest, CreateMode, ErrorCode, Perms, Reply, Request, Xid,
};
use minikeeper_test_kit::{
    random::Random,
    wire::{self, Wire},
};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use serde_json::json;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, ClientConnection, ConfigBuilder, RootCertStore,
        client::WantsClientCert,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName},
    },
};

use crate::{
    http::{answer, done, post},
    kit::{Logged, TIMEOUT_MS, wait_until},
};

/// A certificate authority, and a folder with a server's certificate and key.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    folder: PathBuf,
}

type Shown = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    /// Creates an authority. `name` must be unique within the process, as it names the folder.
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("minikeeper-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut params = named(&[(DnType::CommonName, name)]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.join("ca.pem"), certificate.pem()).unwrap();
        let authority = Self {
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
            folder,
        };
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap();
        fs::write(authority.folder.join("cert.pem"), certificate.pem()).unwrap();
        fs::write(authority.folder.join("key.pem"), key.serialize_pem()).unwrap();
        authority
    }

    fn client(&self, name: &[(DnType, &str)]) -> Shown {
        let key = KeyPair::generate().unwrap();
        let certificate = named(name).signed_by(&key, &self.issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (certificate.der().clone(), key.into())
    }

    /// Starts a server with a plain and a secure port.
    fn serve(&self, change: impl FnOnce(&mut Config)) -> Logged {
        Logged::start(|config| {
            config.secure_listen = Some("127.0.0.1:0".parse().unwrap());
            config.tls_certificate = Some(self.folder.join("cert.pem"));
            config.tls_key = Some(self.folder.join("key.pem"));
            change(config);
        })
    }

    /// Starts a server that requires client certificates of this authority.
    fn serve_mutual(&self, change: impl FnOnce(&mut Config)) -> Logged {
        self.serve(|config| {
            config.tls_client_ca = Some(self.folder.join("ca.pem"));
            change(config);
        })
    }

    /// Returns the configuration of a client that trusts this authority.
    fn trusting(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
    }

    /// Connects a client over TLS. A thread encrypts and decrypts its bytes.
    fn connect(&self, logged: &Logged, shown: Option<Shown>) -> Wire {
        let config = self.trusting();
        let config = match shown {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => config
                .with_client_auth_cert(vec![certificate], key)
                .unwrap(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Wire::connect(listener.local_addr().unwrap());
        let (plain, _) = listener.accept().unwrap();
        plain.set_nonblocking(true).unwrap();
        let address = secure(logged);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let mut plain = tokio::net::TcpStream::from_std(plain).unwrap();
                let stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let name = ServerName::try_from("localhost").unwrap();
                let connector = TlsConnector::from(Arc::new(config));
                // If the handshake fails, the client's connection is closed.
                if let Ok(mut stream) = connector.connect(name, stream).await {
                    let _ = tokio::io::copy_bidirectional(&mut plain, &mut stream).await;
                }
            });
        });
        wire
    }

    fn open(&self, logged: &Logged, shown: Option<Shown>) -> Wire {
        let mut wire = self.connect(logged, shown);
        wire.handshake(TIMEOUT_MS);
        wire
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn named(name: &[(DnType, &str)]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in name {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params
}

fn secure(logged: &Logged) -> SocketAddr {
    logged.server.secure_addr().expect("a secure port")
}

fn who_am_i(wire: &mut Wire) -> Vec<(String, String)> {
    let Reply::ClientInfos(infos) = wire.must(&Request::WhoAmI) else {
        panic!("another reply");
    };
    let text = |text: &minikeeper_protocol::Ustring| text.to_str_lossy().into_owned();
    infos
        .iter()
        .map(|info| (text(&info.scheme), text(&info.user)))
        .collect()
}

fn set_acl(path: &str, scheme: &str, id: &str) -> Request {
    let entry = Acl {
        perms: Perms::ALL,
        scheme: Some(scheme.into()),
        id: Some(id.into()),
    };
    Request::SetAcl {
        path: Some(path.into()),
        acl: AclList::new(&[entry]),
        version: -1,
    }
}

/// `docs/zookeeper-protocol.md` section 9.12: both ports serve one state; large replies arrive
/// whole.
#[test]
fn tls_and_plain_clients_share_a_state() {
    let authority = Authority::new("share");
    let logged = authority.serve(|_| {});
    let mut secret = authority.open(&logged, None);
    let data = vec![7; 900_000];
    secret.must(&wire::create("/a", &data, CreateMode::Ephemeral));
    let (mut plain, _) = Wire::open(logged.address(), TIMEOUT_MS);
    for (client, watch) in [(&mut plain, false), (&mut secret, true)] {
        let read = client.must(&wire::get("/a", watch));
        assert!(matches!(read, Reply::Data(Some(got), _) if got == data));
    }
    plain.must(&wire::set("/a", b"1"));
    assert_eq!(secret.event().path, "/a");
    assert_eq!(
        who_am_i(&mut secret),
        [("ip".to_owned(), "127.0.0.1".to_owned())]
    );
    drop(secret);
    wait_until("its connection is closed", || {
        logged.server.connections() == 1
    });
}

/// `docs/zookeeper-protocol.md` section 18.2.
#[test]
fn four_letter_words_are_answered_over_tls() {
    let authority = Authority::new("words");
    let logged = authority.serve(|_| {});
    let mut wire = authority.connect(&logged, None);
    wire.send_raw(b"ruok");
    assert_eq!(wire.rest(), b"imok");
    let mut wire = authority.connect(&logged, None);
    wire.send_raw(b"conf");
    let port = format!("\nsecureClientPort={}\n", secure(&logged).port());
    assert!(String::from_utf8(wire.rest()).unwrap().contains(&port));
}

/// The plain port could not be disabled, so clients without a certificate could use it.
#[test]
fn server_without_a_plain_port_serves_tls_only() {
    let authority = Authority::new("alone");
    // The server would not start if it listened on the plain port too.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let logged = authority.serve_mutual(|config| {
        config.listen = taken.local_addr().unwrap();
        config.secure_only = true;
        config.control.is_enabled = true;
    });
    assert_eq!(logged.address(), secure(&logged));
    assert_eq!(logged.server.connect_string(), secure(&logged).to_string());
    assert_eq!(logged.server.control_addr(), None);
    let bob = || Some(authority.client(&[(DnType::CommonName, "bob")]));
    authority.open(&logged, bob()).ping();
    let mut wire = authority.connect(&logged, bob());
    wire.send_raw(b"conf");
    let conf = String::from_utf8(wire.rest()).unwrap();
    assert!(
        conf.starts_with("clientPort=-1\nsecureClientPort="),
        "{conf}"
    );
}

#[test]
fn control_is_served_over_tls() {
    let authority = Authority::new("control");
    let logged = authority.serve(|config| config.control.is_enabled = true);
    let mut wire = authority.connect(&logged, None);
    wire.send_raw(b"GET /v1/now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = String::from_utf8(wire.rest()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\"elapsed_ms\":"), "{answer}");
}

/// While the server is down, its control port is on the loopback address only, so that nothing
/// crosses a network unencrypted.
#[test]
fn server_taken_down_over_tls_has_its_side_port_on_loopback() {
    let authority = Authority::new("down");
    let logged = authority.serve(|config| config.control.is_enabled = true);
    let mut wire = authority.connect(&logged, None);
    wire.send_raw(b"POST /v1/go_down HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let gone = answer(&wire.rest());
    assert!(TcpStream::connect(secure(&logged)).is_err());
    let side: SocketAddr = done(gone)["control"].as_str().unwrap().parse().unwrap();
    assert!(side.ip().is_loopback());
    done(post(side, "come_up", &json!({})));
    authority.open(&logged, None).ping();
}

/// `docs/zookeeper-protocol.md` section 9.12: a failed TLS handshake closes the connection and is
/// counted.
#[test]
fn plain_bytes_on_the_secure_port_close_the_connection() {
    let authority = Authority::new("plain");
    let logged = authority.serve(|_| {});
    let mut wire = Wire::connect(secure(&logged));
    wire.send_raw(&[0; 64]);
    // A TLS alert comes before the end.
    assert!(wire.rest().len() < 64);
    logged.wait_for_line(&["DEBUG", "TLS handshake failed"]);
    assert_eq!(logged.server.limit_counts().unsuccessful_handshakes, 1);
    authority.open(&logged, None).ping();
}

/// `docs/zookeeper-protocol.md` section 6.1: the handshake timeout includes the TLS handshake.
#[test]
fn unfinished_tls_handshake_is_closed_at_the_handshake_timeout() {
    let authority = Authority::new("half");
    let logged = authority.serve(|_| {});
    let mut silent = Wire::connect(secure(&logged));
    // The header of a record of 200 bytes, and one byte of it.
    silent.send_raw(&[22, 3, 1, 0, 200, 1]);
    let mut idle = authority.connect(&logged, None);
    wait_until("both connections are accepted", || {
        logged.server.connections() == 2
    });
    logged.server.advance(Duration::from_secs(10));
    silent.expect_closed();
    idle.expect_closed();
    wait_until("both connections are closed", || {
        logged.server.connections() == 0
    });
    assert_eq!(
        logged.server.limit_counts().sessionless_connections_expired,
        2
    );
}

/// The limit of connections per address counts both ports together.
#[test]
fn connections_per_address_max_counts_both_ports() {
    let authority = Authority::new("limit");
    let logged = authority.serve(|config| config.connections_per_address_max = 2);
    let (mut plain, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let mut secret = authority.open(&logged, None);
    authority.connect(&logged, None).expect_closed();
    Wire::connect(logged.address()).expect_reset();
    plain.ping();
    secret.ping();
}

/// `docs/zookeeper-protocol.md` section 9.12: like `ssl.clientAuth=need`, ZooKeeper's default.
#[test]
fn client_certificate_is_required_and_checked() {
    let authority = Authority::new("demand");
    let logged = authority.serve_mutual(|_| {});
    authority.connect(&logged, None).expect_closed();
    let stranger = Authority::new("stranger").client(&[(DnType::CommonName, "bob")]);
    authority.connect(&logged, Some(stranger)).expect_closed();
    wait_until("both handshakes are counted", || {
        logged.server.limit_counts().unsuccessful_handshakes == 2
    });
    let name = [
        (DnType::CountryName, "DE"),
        (DnType::OrganizationName, "Acme, Inc."),
        (DnType::CommonName, "bob"),
    ];
    let mut bob = authority.open(&logged, Some(authority.client(&name)));
    let expected = [("ip", "127.0.0.1"), ("x509", "CN=bob,O=Acme\\, Inc.,C=DE")];
    let expected = expected.map(|(scheme, user)| (scheme.to_owned(), user.to_owned()));
    assert_eq!(who_am_i(&mut bob), expected);
    bob.must(&wire::create("/a", b"", CreateMode::Persistent));
}

/// `docs/zookeeper-protocol.md` sections 9.2, 9.3, 9.5 and 9.12.
#[test]
fn certificate_subject_is_an_identity_in_access_lists() {
    let authority = Authority::new("lists");
    let logged = authority.serve_mutual(|config| {
        config.x509_super_user = Some("CN=admin".to_owned());
    });
    let common = |name| authority.client(&[(DnType::CommonName, name)]);
    let mut bob = authority.open(&logged, Some(common("bob")));
    let mut eve = authority.open(&logged, Some(common("eve")));
    let mut admin = authority.open(&logged, Some(common("admin")));
    for path in ["/a", "/b"] {
        bob.must(&wire::create(path, b"", CreateMode::Persistent));
    }
    let invalid = bob.refused(&set_acl("/a", "x509", "bob"));
    assert_eq!(invalid, ErrorCode::InvalidAcl);
    bob.must(&set_acl("/a", "x509", "CN=bob"));
    bob.must(&set_acl("/b", "auth", ""));
    let (mut plain, _) = Wire::open(logged.address(), TIMEOUT_MS);
    for path in ["/a", "/b"] {
        bob.must(&wire::get(path, false));
        for other in [&mut eve, &mut plain] {
            assert_eq!(other.refused(&wire::get(path, false)), ErrorCode::NoAuth);
        }
        admin.must(&wire::get(path, false));
    }
    let supers = who_am_i(&mut admin);
    assert!(supers.contains(&("super".to_owned(), String::new())));
    let auth = Request::Auth {
        kind: 0,
        scheme: Some("x509".into()),
        data: None,
    };
    bob.must(&auth);
    assert_eq!(plain.refused(&auth), ErrorCode::AuthFailed);
}

/// CVE-2026-24281: ZooKeeper accepted a certificate for an address if a reverse look-up of the
/// address gave the certificate's name, as for 127.0.0.1 and `localhost`. Here a client checks the
/// name that it connects to, and the server checks only the client's chain, not its name.
#[test]
fn cve_2026_24281_certificate_for_a_name_is_invalid_for_its_address() {
    let authority = Authority::new("reverse");
    let logged = authority.serve_mutual(|_| {});
    let bob = || authority.client(&[(DnType::CommonName, "not.the.name.of.this.machine")]);
    let connect = |name: &str| {
        let (certificate, key) = bob();
        let config = authority.trusting();
        let config = config
            .with_client_auth_cert(vec![certificate], key)
            .unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = TcpStream::connect(secure(&logged)).unwrap();
        socket.set_read_timeout(Some(wire::PATIENCE)).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        Ok::<_, std::io::Error>(())
    };
    connect("localhost").unwrap();
    let refused = connect("127.0.0.1").unwrap_err().to_string();
    assert!(refused.contains("certificate"), "{refused}");
    authority.open(&logged, Some(bob())).ping();
}

/// A client that decrypts one record at a time.
struct RecordReader {
    socket: TcpStream,
    tls: ClientConnection,
}

impl RecordReader {
    fn connect(authority: &Authority, logged: &Logged) -> Self {
        let socket = TcpStream::connect(secure(logged)).unwrap();
        socket.set_read_timeout(Some(wire::PATIENCE)).unwrap();
        let config = authority.trusting().with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut reader = Self { socket, tls };
        reader.send(b"");
        while reader.tls.is_handshaking() {
            reader.record();
            reader.send(b"");
        }
        reader
    }

    fn send(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).unwrap();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket).unwrap();
        }
    }

    /// Reads a record. Returns its plaintext, which is empty for a record of the TLS protocol
    /// itself.
    fn record(&mut self) -> Vec<u8> {
        let mut record = vec![0; 5];
        self.socket.read_exact(&mut record).unwrap();
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        record.resize(5 + length, 0);
        self.socket.read_exact(&mut record[5..]).unwrap();
        let mut unread = &record[..];
        while !unread.is_empty() {
            self.tls.read_tls(&mut unread).unwrap();
        }
        let state = self.tls.process_new_packets().unwrap();
        let mut plain = vec![0; state.plaintext_bytes_to_read()];
        self.tls.reader().read_exact(&mut plain).unwrap();
        plain
    }

    /// Reads `count` frames. Returns the number of records.
    fn frames(&mut self, count: usize) -> usize {
        let (mut records, mut read) = (0, 0);
        let mut left = 0;
        while read < count {
            let plain = self.record();
            if plain.is_empty() {
                continue;
            }
            records += 1;
            if left == 0 {
                let head = plain.first_chunk().expect("a record begins with a length");
                left = 4 + usize::try_from(u32::from_be_bytes(*head)).unwrap();
            }
            assert!(
                plain.len() <= left,
                "a record of {} bytes, {left} of its first frame: frame {read}, record {records}",
                plain.len()
            );
            left -= plain.len();
            read += usize::from(left == 0);
        }
        records
    }
}

/// The replies to requests that arrived together went into one record. kazoo read one frame and
/// then waited for its socket, which had no more bytes: 20 reads at once took 10 s.
#[test]
fn each_tls_record_has_bytes_of_one_frame_only() {
    let authority = Authority::new("records");
    let logged = authority.serve(|_| {});
    let (mut plain, _) = Wire::open(logged.address(), TIMEOUT_MS);
    let sizes = [0_u16, 1, 100, 1_000, 16_300, 16_384, 16_385, 40_000];
    for size in sizes {
        let data = vec![7; usize::from(size)];
        let path = format!("/{size}");
        plain.must(&wire::create(&path, &data, CreateMode::Persistent));
    }
    let mut reader = RecordReader::connect(&authority, &logged);
    let mut hello = Vec::new();
    ConnectRequest::new(TIMEOUT_MS).encode(&mut hello);
    reader.send(&hello);
    assert_eq!(reader.frames(1), 1);
    let seed = minikeeper_test_kit::random::seed_or(1);
    println!("MINIKEEPER_SEED={seed}");
    let mut random = Random::new(seed);
    for _ in 0..30 {
        let mut requests = Vec::new();
        let mut records_min = 0;
        let count = 1 + random.below(100);
        for xid in (1..).take(count) {
            let size = random.pick(&sizes);
            wire::get(&format!("/{size}"), true).encode(Xid(xid), &mut requests);
            records_min += 1 + usize::from(size / 16_384);
        }
        reader.send(&requests);
        // A frame is split only where rustls has no room for all of it.
        let records = reader.frames(count);
        assert!(
            records <= 2 * records_min,
            "{records} records, {records_min}"
        );
    }
    // Several events at once.
    let mut requests = Vec::new();
    for (size, xid) in sizes.into_iter().zip(1..) {
        wire::set(&format!("/{size}"), b"").encode(Xid(xid), &mut requests);
    }
    plain.send_raw(&requests);
    assert_eq!(reader.frames(sizes.len()), sizes.len());
}
