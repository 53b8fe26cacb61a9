//! `minikeeper healthcheck`: sends the four-letter word `ruok`.

use std::{
    io::{self, Read, Write},
    thread,
    time::Duration,
};

use minikeeper_core::files;

use crate::{
    address,
    args::HealthcheckArgs,
    clock,
    ctl::http::{PacedStream, is_timeout},
};

/// How long one server may take to connect, and then to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The pause between two rounds of `--wait`.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks the servers one after the other until one is healthy, and prints that; again, as long as `--wait` says.
///
/// # Errors
/// When none is healthy, or can be asked.
pub(crate) fn run(args: &HealthcheckArgs) -> Result<(), String> {
    let deadline = clock::now().checked_add(Duration::from_secs(args.wait.into()));
    loop {
        let outcome = check_all(args);
        let left = deadline.map(|it| it.saturating_duration_since(clock::now()));
        if outcome.is_ok() || left.is_some_and(|left| left.is_zero()) {
            return outcome;
        }
        thread::sleep(PAUSE);
    }
}

fn check_all(args: &HealthcheckArgs) -> Result<(), String> {
    let mut last = Ok(());
    for address in addresses(args)?.split(',') {
        last = check(args, address);
        if last.is_ok() {
            break;
        }
    }
    last
}

fn addresses(args: &HealthcheckArgs) -> Result<String, String> {
    let Some(file) = &args.address_file else {
        return Ok(args.address.clone());
    };
    let text = files::read_to_string(file, files::SETTINGS_BYTES_MAX);
    let text = text.map_err(|error| format!("cannot read the address in {file:?}: {error}"))?;
    Ok(text.trim().to_owned())
}

#[cfg_attr(
    not(feature = "tls"),
    expect(unused_variables, reason = "with `tls` it has certificates")
)]
fn check(args: &HealthcheckArgs, address: &str) -> Result<(), String> {
    let failed = |error: io::Error| {
        let why = if is_timeout(&error) {
            format!("no answer within {} s", TIMEOUT.as_secs())
        } else {
            error.to_string()
        };
        format!("{address} is not healthy: {why}")
    };
    let sockets = address::resolve(address)?;
    #[cfg(feature = "tls")]
    let tls = tls::client(args, address)?;
    let stream = address::connect(&sockets, TIMEOUT).map_err(failed)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
    let stream = PacedStream::new(stream, TIMEOUT);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctl::http::tests::TricklingStream;

    /// Each byte of the answer had a limit of time, and the answer none: a server that sent one a second held the
    /// command for two minutes.
    #[test]
    fn answer_that_trickles_is_an_error() {
        let trickling = TricklingStream::new(Duration::from_secs(1), 1, 64);
        let error = ask(PacedStream::new(trickling, TIMEOUT)).unwrap_err();
        assert!(is_timeout(&error), "{error}");
        let quick = TricklingStream::new(Duration::from_millis(100), 1, 4);
        assert_eq!(ask(PacedStream::new(quick, TIMEOUT)).unwrap().len(), 4);
    }
}
