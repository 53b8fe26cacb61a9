//! `minikeeper healthcheck`: sends the four-letter word `ruok`.

use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use crate::args::HealthcheckArgs;

/// How long each step may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Asks the servers one after the other until one is healthy, and prints that.
///
/// # Errors
/// When none is healthy, or can be asked.
pub(crate) fn run(args: &HealthcheckArgs) -> Result<(), String> {
    let mut last = Ok(());
    for address in args.address.split(',') {
        last = check(args, address);
        if last.is_ok() {
            break;
        }
    }
    last
}

#[cfg_attr(
    not(feature = "tls"),
    expect(unused_variables, reason = "with `tls` it has certificates")
)]
fn check(args: &HealthcheckArgs, address: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("{address} is not healthy: {error}");
    let socket = address
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve {address:?}: {error}; write HOST:PORT"))?
        .next()
        .ok_or_else(|| format!("cannot resolve {address:?}: no address"))?;
    #[cfg(feature = "tls")]
    let tls = tls::client(args, address)?;
    let stream = TcpStream::connect_timeout(&socket, TIMEOUT).map_err(failed)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
    #[cfg(feature = "tls")]
    let answer = match tls {
        Some(tls) => ask(tokio_rustls::rustls::StreamOwned::new(tls, stream)),
        None => ask(stream),
    };
    #[cfg(not(feature = "tls"))]
    let answer = ask(stream);
    let answer = answer.map_err(failed)?;
    if answer == b"imok" {
        let _ = writeln!(io::stdout(), "{address} is healthy");
        return Ok(());
    }
    let answer = String::from_utf8_lossy(&answer);
    let text = format!("it answered ruok with {answer:?} instead of \"imok\"");
    Err(format!("{address} is not healthy: {text}"))
}

fn ask(mut stream: impl Read + Write) -> io::Result<Vec<u8>> {
    stream.write_all(b"ruok")?;
    stream.flush()?;
    let mut answer = Vec::new();
    stream.take(64).read_to_end(&mut answer)?;
    Ok(answer)
}

#[cfg(feature = "tls")]
mod tls {
    use std::{path::Path, sync::Arc};

    use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring};

    use crate::args::HealthcheckArgs;

    /// Returns the client's side of TLS if the arguments ask for TLS.
    pub(super) fn client(
        args: &HealthcheckArgs,
        address: &str,
    ) -> Result<Option<ClientConnection>, String> {
        let Some(ca) = &args.tls_ca else {
            return Ok(None);
        };
        let unusable = |error| format!("cannot set up TLS: {error}");
        let mut roots = RootCertStore::empty();
        for certificate in certificates(ca)? {
            roots.add(certificate).map_err(unusable)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots);
        let config = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_file(key).map_err(cannot_read(key))?;
                let chain = certificates(certificate)?;
                config.with_client_auth_cert(chain, key).map_err(unusable)?
            }
            _ => config.with_no_client_auth(),
        };
        let (host, _) = address.rsplit_once(':').unwrap_or((address, ""));
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|_| format!("{host:?} is not a valid host name for a certificate"))?;
        let client = ClientConnection::new(Arc::new(config), name).map_err(unusable)?;
        Ok(Some(client))
    }

    fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
        CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(cannot_read(file))
    }

    fn cannot_read<E: std::fmt::Display>(file: &Path) -> impl FnOnce(E) -> String {
        let file = file.to_owned();
        move |error| format!("cannot read {file:?}: {error}; it must be a PEM file")
    }
}
