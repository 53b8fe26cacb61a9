//! Connections over TLS, feature `tls`.

use std::{
    fmt, io,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, UnixTime,
    pem::{self, PemObject as _},
};
use tokio::{
    io::{AsyncRead, ReadBuf, ReadHalf},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self, AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct,
        RootCertStore, SignatureScheme,
        client::{
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
            verify_server_cert_signed_by_trust_anchor,
        },
        crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
        server::ParsedCertificate,
    },
};

use crate::transport::{Connecting, Reader, Transport, Writer, name_and_port, open};

/// TCP with TLS 1.2 or 1.3, for a server's secure port. Needs the feature `tls`.
///
/// It trusts the root certificates that the caller sets, and no others: those of the system are not
/// read. The server's certificate must be valid for the name or address that the connect string
/// has, among its subject alternative names: unlike Java, the common name does not count.
/// Revocation lists are not read. Connecting does no reverse look-up.
///
/// Files are in PEM form. Java key stores are not read: `keytool -exportcert -rfc` and `openssl
/// pkcs12` convert them. Private keys must not be encrypted.
///
/// If the handshake fails, the client tries the next server, and
/// [`Error::NotConnected`](crate::Error::NotConnected) and
/// [`Client::last_failure`](crate::Client::last_failure) have the reason.
///
/// # Examples
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minikeeper_client::{Client, Tls};
///
/// let tls = Tls::builder()
///     .roots_file("ca.pem")
///     .client_certificate_files("client.pem", "client-key.pem")
///     .build()?;
/// let client = Client::builder("zk1:2281,zk2:2281")?.transport(tls).connect().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Returns the settings of a transport, without root certificates.
    pub const fn builder() -> TlsBuilder {
        TlsBuilder {
            roots: Vec::new(),
            client: None,
            check_host_name: true,
        }
    }
}

impl Transport for Tls {
    fn connect(&mut self, host: &str) -> Connecting {
        let host = host.to_owned();
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Box::pin(async move {
            let name = server_name(&host)?;
            let stream = open(&host).await?;
            let stream = connector.connect(name, stream).await.map_err(explained)?;
            let (reader, writer) = tokio::io::split(stream);
            Ok((
                Box::new(TlsReader(reader)) as Reader,
                Box::new(writer) as Writer,
            ))
        })
    }
}

/// Returns the name for which the certificate of this server must be valid.
fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let (name, _) = name_and_port(host)?;
    // The zone of an address is this machine's name of an interface.
    let name = name.split_once('%').map_or(name, |(address, _)| address);
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let text = format!("no certificate can be valid for the name {name:?}; use a DNS name");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

/// Explains errors of TLS: with TLS 1.3 the server's refusal of a client certificate is read after
/// the handshake.
struct TlsReader(ReadHalf<TlsStream<TcpStream>>);

impl AsyncRead for TlsReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(cx, buffer);
        read.map_err(explained)
    }
}

/// Adds to an error of TLS what a person can do about it.
fn explained(error: io::Error) -> io::Error {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
    let advice = match fault.map(advice) {
        Some(Some(advice)) => advice,
        // The peer has closed the connection within the handshake.
        None if error.kind() == io::ErrorKind::UnexpectedEof => NOT_TLS,
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}; {advice}"))
}

const NOT_TLS: &str = "does this port speak TLS? connect to the server's secure port";

const fn advice(error: &rustls::Error) -> Option<&'static str> {
    use rustls::Error as E;
    Some(match error {
        E::InvalidCertificate(fault) => match fault {
            CertificateError::UnknownIssuer => {
                "add the certificate of the authority that issued it to the roots"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "connect with a name that the certificate has, or set check_host_name(false)"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "renew the server's certificate, or correct this machine's clock"
            }
            _ => return None,
        },
        E::InvalidMessage(_) => NOT_TLS,
        E::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired,
        ) => "set a client certificate that the server trusts",
        E::AlertReceived(AlertDescription::ProtocolVersion) | E::PeerIncompatible(_) => {
            "the server must speak TLS 1.2 or 1.3, with a current cipher suite"
        }
        _ => return None,
    })
}

/// The settings of [`Tls`]. Returned by [`Tls::builder`].
///
/// # Examples
/// ```
/// use minikeeper_client::{Tls, TlsError};
///
/// let without_roots = Tls::builder().build();
/// assert!(matches!(without_roots, Err(TlsError::NoRoots)));
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct TlsBuilder {
    roots: Vec<PemSource>,
    /// The certificate, and its private key.
    client: Option<(PemSource, PemSource)>,
    check_host_name: bool,
}

impl fmt::Debug for TlsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is a secret.
        f.debug_struct("TlsBuilder")
            .field("check_host_name", &self.check_host_name)
            .finish_non_exhaustive()
    }
}

/// Text in PEM form.
#[derive(Clone)]
enum PemSource {
    File(PathBuf),
    Bytes(Vec<u8>),
}

impl PemSource {
    fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(file) => std::fs::read(file),
            Self::Bytes(bytes) => Ok(bytes.clone()),
        }
    }
}

impl fmt::Display for PemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{file:?}"),
            Self::Bytes(_) => f.write_str("the given bytes"),
        }
    }
}

impl TlsBuilder {
    /// Adds the root certificates of a PEM file.
    pub fn roots_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.roots.push(PemSource::File(file.into()));
        self
    }

    /// Adds root certificates in PEM form.
    pub fn roots_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots.push(PemSource::Bytes(pem.into()));
        self
    }

    /// Sets the client's certificate, with the chain up to its root, and its private key, as PEM
    /// files. Servers with `ssl.clientAuth=need` require it; its subject is an identity of scheme
    /// `x509`.
    pub fn client_certificate_files(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        let certificate = PemSource::File(certificate.into());
        self.client = Some((certificate, PemSource::File(key.into())));
        self
    }

    /// Sets the client's certificate and its private key, in PEM form. See
    /// [`TlsBuilder::client_certificate_files`].
    pub fn client_certificate_pem(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        let certificate = PemSource::Bytes(certificate.into());
        self.client = Some((certificate, PemSource::Bytes(key.into())));
        self
    }

    /// Sets whether the server's certificate must be valid for the name or address in the connect
    /// string. Without that check, whoever has any certificate of the same roots can pose as the
    /// server: use roots that issue certificates only for the ensemble. Chain and dates are checked
    /// in any case.
    ///
    /// Default: true. Source: `ssl.hostnameVerification` of ZooKeeper.
    pub const fn check_host_name(mut self, check: bool) -> Self {
        self.check_host_name = check;
        self
    }

    /// Reads the files and returns the transport. Later changes of the files have no effect.
    ///
    /// # Errors
    /// [`TlsError`] with the file and its fault.
    pub fn build(self) -> Result<Tls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for source in &self.roots {
            for certificate in certificates("root certificate", source)? {
                let added = roots.add(certificate);
                added.map_err(unusable("root certificate", source))?;
            }
        }
        if roots.is_empty() {
            return Err(TlsError::NoRoots);
        }
        let roots = Arc::new(roots);
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Tls(error.into()))?;
        let config = if self.check_host_name {
            config.with_root_certificates(roots)
        } else {
            let verifier = Arc::new(AnyName { roots, provider });
            config
                .dangerous()
                .with_custom_certificate_verifier(verifier)
        };
        let config = match &self.client {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => config
                .with_client_auth_cert(
                    certificates("client certificate", certificate)?,
                    private_key(key)?,
                )
                .map_err(unusable("client certificate", certificate))?,
        };
        let config = Arc::new(config);
        Ok(Tls { config })
    }
}

fn certificates(
    what: &'static str,
    source: &PemSource,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = source.read().map_err(unreadable(what, source))?;
    let certificates = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(unreadable(what, source))?;
    if certificates.is_empty() {
        let place = source.to_string();
        return Err(TlsError::Missing { what, place });
    }
    Ok(certificates)
}

fn private_key(source: &PemSource) -> Result<PrivateKeyDer<'static>, TlsError> {
    const WHAT: &str = "private key";
    // In PKCS #8, and in the older form of openssl.
    const ENCRYPTED: [&str; 2] = [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----",
        "Proc-Type: 4,ENCRYPTED",
    ];
    let bytes = source.read().map_err(unreadable(WHAT, source))?;
    let place = source.to_string();
    if ENCRYPTED.iter().any(|line| has_line(&bytes, line)) {
        return Err(TlsError::EncryptedKey { place });
    }
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Err(pem::Error::NoItemsFound) => Err(TlsError::Missing { what: WHAT, place }),
        key => key.map_err(unreadable(WHAT, source)),
    }
}

fn has_line(bytes: &[u8], line: &str) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|it| it.trim_ascii() == line.as_bytes())
}

fn unreadable<E: std::error::Error + Send + Sync + 'static>(
    what: &'static str,
    source: &PemSource,
) -> impl FnOnce(E) -> TlsError {
    let place = source.to_string();
    move |error| TlsError::Unreadable {
        what,
        place,
        source: error.into(),
    }
}

fn unusable(what: &'static str, source: &PemSource) -> impl FnOnce(rustls::Error) -> TlsError {
    let place = source.to_string();
    move |error| TlsError::Unusable {
        what,
        place,
        source: error.into(),
    }
}

/// Why [`TlsBuilder::build`] failed.
///
/// # Examples
/// ```
/// use minikeeper_client::Tls;
///
/// let missing = Tls::builder().roots_file("no-such.pem").build().unwrap_err();
/// assert_eq!(missing.to_string(), "cannot read the root certificate in \"no-such.pem\"");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is damaged.
    #[error("cannot read the {what} in {place}")]
    Unreadable {
        /// What it should have.
        what: &'static str,
        /// The file.
        place: String,
        /// The fault.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file does not have what it should have.
    #[error("{place} has no {what} in PEM form; convert Java key stores with keytool or openssl")]
    Missing {
        /// What it should have.
        what: &'static str,
        /// The file.
        place: String,
    },
    /// The private key is encrypted.
    #[error(
        "the private key in {place} is encrypted; decrypt it with openssl pkey -in IN -out OUT"
    )]
    EncryptedKey {
        /// The file.
        place: String,
    },
    /// A certificate cannot be used, or does not belong to the private key.
    #[error("cannot use the {what} in {place}")]
    Unusable {
        /// What it is.
        what: &'static str,
        /// The file.
        place: String,
        /// The fault.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No root certificate is set, so that no server could be trusted.
    #[error("no root certificates; set those of the servers with roots_file or roots_pem")]
    NoRoots,
    /// TLS itself cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Checks the server's certificate except for its name.
#[derive(Debug)]
struct AnyName {
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
