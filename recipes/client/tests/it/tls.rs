//! TLS against a server with certificates of the test, over sockets, in real time.

use std::{fs, path::PathBuf, time::Duration};

use minikeeper::{Config, Server};
use minikeeper_client::{
    Client, ClientBuilder, ConnectionState, CreateMode, Error, Tls, TlsBuilder, TlsError,
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
};

use crate::kit::{PATIENCE, state};

/// A certificate authority, and a folder for files.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    folder: PathBuf,
}

impl Authority {
    /// Creates an authority. `name` must be unique within the process, as it names the folder.
    fn new(name: &str) -> Self {
        let name = format!("minikeeper-client-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let authority = Self {
            issuer,
            pem,
            folder,
        };
        fs::write(authority.file("ca.pem"), &authority.pem).unwrap();
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns a certificate and its key, for the address of the tests' servers.
    fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Starts a server with a certificate of this authority.
    async fn serve(&self, change: impl FnOnce(&mut CertificateParams)) -> Server {
        self.serve_with(change, |_| {}).await
    }

    async fn serve_with(
        &self,
        change: impl FnOnce(&mut CertificateParams),
        configure: impl FnOnce(&mut Config),
    ) -> Server {
        let (certificate, key) = self.issue(change);
        fs::write(self.file("cert.pem"), certificate).unwrap();
        fs::write(self.file("key.pem"), key).unwrap();
        let server = Server::builder().configure(|config| {
            config.secure_listen = Some("127.0.0.1:0".parse().unwrap());
            config.tls_certificate = Some(self.file("cert.pem"));
            config.tls_key = Some(self.file("key.pem"));
            configure(config);
        });
        server.start().await.unwrap()
    }

    /// Returns the settings of a client that trusts this authority.
    fn trusted(&self) -> TlsBuilder {
        Tls::builder().roots_file(self.file("ca.pem"))
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn secure(server: &Server) -> String {
    server.secure_addr().unwrap().to_string()
}

fn client(address: &str, tls: TlsBuilder) -> ClientBuilder {
    let builder = Client::builder(address).unwrap();
    builder
        .connection_timeout(PATIENCE)
        .transport(tls.build().unwrap())
}

/// Fails to connect, and returns the reason of the last attempt.
async fn refusal(address: &str, tls: TlsBuilder) -> String {
    let connecting = client(address, tls).connection_timeout(Duration::from_secs(1));
    match connecting.connect().await {
        Err(Error::NotConnected {
            last: Some(last), ..
        }) => last,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn client_works_over_tls_and_resumes_its_session() {
    let authority = Authority::new("works");
    let server = authority.serve(|_| {}).await;
    let client = client(&secure(&server), authority.trusted())
        .connect()
        .await
        .unwrap();
    // More than a read of the client, and more than a record of TLS.
    let data = vec![7; 900_000];
    client
        .create("/a", &data, CreateMode::Ephemeral)
        .await
        .unwrap();
    let mut states = client.states();
    server.disconnect_all();
    let resumed = state(&mut states, |state| state.is_connected()).await;
    assert!(
        matches!(resumed, ConnectionState::Reconnected { .. }),
        "{resumed:?}"
    );
    assert_eq!(client.epoch().0, 1);
    assert_eq!(client.get_data("/a").await.unwrap().as_bytes(), data);
    client.close().await;
}

#[tokio::test]
async fn certificate_of_another_authority_is_refused() {
    let (theirs, ours) = (Authority::new("theirs"), Authority::new("ours"));
    let server = theirs.serve(|_| {}).await;
    for tls in [ours.trusted(), ours.trusted().check_host_name(false)] {
        let last = refusal(&secure(&server), tls).await;
        assert_eq!(
            last,
            format!(
                "{}: invalid peer certificate: UnknownIssuer; add the certificate of the authority \
                 that issued it to the roots",
                secure(&server)
            )
        );
    }
}

#[tokio::test]
async fn name_of_the_server_is_checked_unless_that_is_switched_off() {
    let authority = Authority::new("names");
    let zk1 = |params: &mut CertificateParams| {
        params.subject_alt_names = vec![SanType::DnsName("zk1".try_into().unwrap())];
    };
    let server = authority.serve(zk1).await;
    let last = refusal(&secure(&server), authority.trusted()).await;
    assert!(
        last.contains("not valid for name") && last.contains("DnsName(\"zk1\")"),
        "{last}"
    );
    assert!(last.ends_with("or set check_host_name(false)"), "{last}");
    let unchecked = authority.trusted().check_host_name(false);
    client(&secure(&server), unchecked).connect().await.unwrap();
}

#[tokio::test]
async fn dns_name_of_the_connect_string_is_the_one_that_counts() {
    let authority = Authority::new("dns");
    let localhost = |params: &mut CertificateParams| {
        params.subject_alt_names = vec![SanType::DnsName("localhost".try_into().unwrap())];
    };
    let server = authority.serve(localhost).await;
    let port = server.secure_addr().unwrap().port();
    let by_name = format!("localhost:{port}");
    client(&by_name, authority.trusted())
        .connect()
        .await
        .unwrap();
}

#[tokio::test]
async fn client_certificate_is_sent_and_its_lack_explained() {
    let authority = Authority::new("mutual");
    let require = |config: &mut Config| config.tls_client_ca = Some(authority.file("ca.pem"));
    let server = authority.serve_with(|_| {}, require).await;
    let last = refusal(&secure(&server), authority.trusted()).await;
    assert!(
        last.ends_with("set a client certificate that the server trusts"),
        "{last}"
    );

    let stranger = Authority::new("stranger");
    let (certificate, key) = stranger.issue(|_| {});
    let unknown = authority.trusted().client_certificate_pem(certificate, key);
    let last = refusal(&secure(&server), unknown).await;
    assert!(
        last.ends_with("set a client certificate that the server trusts"),
        "{last}"
    );

    let (certificate, key) = authority.issue(|params| {
        params.distinguished_name.push(DnType::CommonName, "bob");
    });
    let known = authority.trusted().client_certificate_pem(certificate, key);
    let client = client(&secure(&server), known).connect().await.unwrap();
    let who = client.who_am_i().await.unwrap();
    assert!(
        who.iter()
            .any(|it| it.scheme == "x509" && it.user.to_str_lossy().contains("CN=bob")),
        "{who:?}"
    );
}

#[tokio::test]
async fn plaintext_server_is_named_as_such() {
    let authority = Authority::new("plain");
    let server = Server::builder().start().await.unwrap();
    let last = refusal(&server.connect_string(), authority.trusted()).await;
    assert!(
        last.ends_with("connect to the server's secure port"),
        "{last}"
    );
}

#[tokio::test]
async fn secure_port_is_named_as_such_to_a_client_without_tls() {
    let authority = Authority::new("secure");
    let server = authority.serve(|_| {}).await;
    let builder = Client::builder(&secure(&server)).unwrap();
    let error = builder
        .connection_timeout(Duration::from_secs(1))
        .connect()
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with("connect with TLS, or to the server's plain port"),
        "{text}"
    );
}

#[tokio::test]
async fn expired_certificate_is_refused() {
    let authority = Authority::new("expired");
    let server = authority
        .serve(|params| {
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
        })
        .await;
    for tls in [
        authority.trusted(),
        authority.trusted().check_host_name(false),
    ] {
        let last = refusal(&secure(&server), tls).await;
        assert!(last.contains("certificate expired"), "{last}");
        assert!(last.ends_with("or correct this machine's clock"), "{last}");
    }
}

#[test]
fn unusable_files_are_refused_with_file_and_fault() {
    let authority = Authority::new("files");
    let (certificate, key) = authority.issue(|_| {});
    let (_, other_key) = authority.issue(|_| {});
    let build = |certificate: &str, key: &str| {
        authority
            .trusted()
            .client_certificate_pem(certificate, key)
            .build()
            .map(drop)
    };
    build(&certificate, &key).unwrap();
    let chain = format!("{certificate}{}", authority.pem);
    build(&chain, &key).unwrap();
    assert!(matches!(
        build(&certificate, &other_key),
        Err(TlsError::Unusable { .. })
    ));
    assert!(matches!(
        build("", &key),
        Err(TlsError::Missing {
            what: "client certificate",
            ..
        })
    ));
    assert!(matches!(
        build(&certificate, "no key"),
        Err(TlsError::Missing {
            what: "private key",
            ..
        })
    ));
    let broken = certificate.replace("-----END CERTIFICATE-----", "");
    assert!(matches!(
        build(&broken, &key),
        Err(TlsError::Unreadable { .. })
    ));
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    assert!(matches!(
        build(&certificate, &encrypted),
        Err(TlsError::EncryptedKey { .. })
    ));
    let old = "-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: DES-CBC,1\r\n\r\n\
               AAAA\r\n-----END RSA PRIVATE KEY-----\r\n";
    assert!(matches!(
        build(&certificate, old),
        Err(TlsError::EncryptedKey { .. })
    ));

    let key_store = authority.file("keys.jks");
    fs::write(&key_store, [0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2]).unwrap();
    let error = Tls::builder().roots_file(&key_store).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{key_store:?} has no root certificate in PEM form; convert Java key stores with \
             keytool or openssl"
        )
    );
}
