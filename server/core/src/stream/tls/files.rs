//! Reads certificates and keys from PEM files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        Error, InconsistentKeys, RootCertStore, ServerConfig,
        crypto::ring,
        server::{VerifierBuilderError, WebPkiClientVerifier},
        sign::{CertifiedKey, SingleCertAndKey},
    },
};

use crate::{config::Config, files};

/// Why the server cannot serve clients over TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is not in PEM form.
    #[error("cannot read {setting} {file:?}; it must be a PEM file")]
    File {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// The fault.
        source: pem::Error,
    },
    /// A file has no certificate in it.
    #[error("{setting} {file:?} contains no certificate; it must have at least one, in PEM form")]
    NoCertificate {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// A certificate or key cannot be used.
    #[error("cannot use {setting} {file:?}")]
    Unusable {
        /// The setting that names its file.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// The fault.
        source: Error,
    },
    /// Client certificates cannot be checked.
    #[error("cannot check client certificates against tls_client_ca")]
    ClientCa(#[source] VerifierBuilderError),
    /// TLS itself cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] Error),
}

/// Creates the acceptor that turns sockets into TLS connections, from the configured files.
pub(crate) fn acceptor(config: &Config) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = match &config.tls_client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(file) => {
            const SETTING: &str = "tls_client_ca";
            let mut roots = RootCertStore::empty();
            for certificate in certificates(SETTING, file)? {
                roots.add(certificate).map_err(unusable(SETTING, file))?;
            }
            WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider))
                .build()
                .map_err(TlsError::ClientCa)?
        }
    };
    // The settings are validated: both files are set.
    let file = config.tls_key.clone().unwrap_or_default();
    let key = read(&file).and_then(|bytes| PrivateKeyDer::from_pem_slice(&bytes));
    let key = key.map_err(|source| TlsError::File {
        setting: "tls_key",
        file: file.clone(),
        source,
    })?;
    let key = provider
        .key_provider
        .load_private_key(key)
        .map_err(unusable("tls_key", &file))?;
    let file = config.tls_certificate.clone().unwrap_or_default();
    let certified = CertifiedKey::new(certificates("tls_certificate", &file)?, key);
    // Only a mismatch of certificate and key is an error: clients judge the rest. rustls cannot
    // parse certificates of version 1, which tests like to create and which ZooKeeper accepts.
    if let Err(source @ Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) =
        certified.keys_match()
    {
        return Err(unusable("tls_certificate", &file)(source));
    }
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    Ok(TlsAcceptor::from(Arc::new(server)))
}

fn certificates(
    setting: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = read(file)
        .and_then(|bytes| CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>())
        .map_err(|source| TlsError::File {
            setting,
            file: file.to_path_buf(),
            source,
        })?;
    if certificates.is_empty() {
        let file = file.to_path_buf();
        return Err(TlsError::NoCertificate { setting, file });
    }
    Ok(certificates)
}

fn read(file: &Path) -> Result<Vec<u8>, pem::Error> {
    files::read(file, files::SETTINGS_BYTES_MAX).map_err(pem::Error::Io)
}

fn unusable(setting: &'static str, file: &Path) -> impl FnOnce(Error) -> TlsError {
    let file = file.to_path_buf();
    move |source| TlsError::Unusable {
        setting,
        file,
        source,
    }
}
