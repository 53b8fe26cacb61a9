//! Refuses settings that are invalid, alone or together.

use std::{error::Error, fmt};

use crate::config::{
    Config,
    settings::{self, Form, Value},
};

/// A setting that is out of range or does not fit another one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// The session timeouts cross.
    TimeoutsCross {
        /// The shortest timeout, in milliseconds.
        min_ms: u32,
        /// The longest timeout, in milliseconds.
        max_ms: u32,
    },
    /// A demanded scheme does not exist here, so that no client could be served.
    UnknownScheme {
        /// The demanded scheme.
        scheme: String,
    },
    /// A setting has no effect without another one.
    Alone {
        /// Its name.
        setting: &'static str,
        /// The name of the other one.
        needs: &'static str,
    },
    /// The super user is not a digest identity, so no client could be the super user.
    NoDigest,
    /// A token that is empty, or that no client can send.
    #[cfg(feature = "control")]
    Token,
    /// A setting is too small, alone or for another one.
    TooSmall {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: u64,
        /// The least value allowed.
        min: u64,
        /// The reason, after a comma; empty if there is no other setting involved.
        because: &'static str,
    },
    /// The ports of the other servers, which follow that of the first one, would exceed 65535.
    NoPorts {
        /// The setting of the first one's address.
        setting: &'static str,
        /// Its port.
        port: u64,
        /// The number of servers.
        servers: usize,
    },
    /// A setting is too large for the protocol.
    TooLarge {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: u64,
        /// The greatest value allowed.
        max: u64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
Self::TimeoutsCross { min_ms, max_ms } => write!(f, "session_timeout_min_ms {min_ms} exceeds session_timeout_max_ms {max_ms}"),
Self::UnknownScheme { scheme } => write!(f, "enforce_auth_schemes names unknown scheme {scheme:?}; known are ip, sasl with the feature sasl, digest with \
         digest_enabled, key with key_scheme, ensemble with ensemble_names, and x509 with TLS"),
Self::Alone { setting, needs } => write!(f, "{setting} is set without {needs}"),
Self::NoDigest => f.write_str("super_digest has no colon; it must be super:BASE64(SHA1(super:PASSWORD))"),
#[cfg(feature = "control")]
Self::Token => f.write_str("control.token is empty or has invalid characters; it must be one or more characters \
         from ! to ~, which are printable ASCII without blanks"),
Self::TooSmall { setting, value, min, because } => write!(f, "{setting} is {value}; it must be at least {min}{because}"),
Self::NoPorts { setting, port, servers } => write!(f, "{setting} has port {port}, which leaves too few for {servers} servers on consecutive ports; \
         it must be at most {}", 65_536 - servers),
Self::TooLarge { setting, value, max } => write!(f, "{setting} is {value}; it must be at most {max}"),
}
    }
}

impl Error for ConfigError {}

impl Config {
    /// Warns if the settings lock out all clients. That is no error: ZooKeeper starts with them too.
    #[cfg(feature = "sasl")]
    pub fn warn_of_locked_out_clients(&self) {
        let is_sasl = |scheme: &String| scheme == "sasl";
        if !self.enforce_auth_schemes.is_empty()
            && self.enforce_auth_schemes.iter().all(is_sasl)
            && self.sasl_users.is_empty()
        {
            tracing::warn!(
                "enforce_auth_schemes demands sasl, and there are no sasl_users: no request is served"
            );
        }
    }

    /// Checks what a server checks when it starts.
    ///
    /// # Errors
    /// The first setting that is out of bounds or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for setting in settings::settings() {
            let Form::Number { min, max, .. } = setting.spec.form else {
                continue;
            };
            let Some(Value::Number(value)) = setting.of(self) else {
                continue;
            };
            let setting = setting.name;
            if value < min {
                return Err(ConfigError::TooSmall {
                    setting,
                    value,
                    min,
                    because: "",
                });
            }
            if value > max {
                return Err(ConfigError::TooLarge {
                    setting,
                    value,
                    max,
                });
            }
        }
        // Values derived from other settings can be too large, too.
        for (setting, value) in [
            ("reply_bytes_max", self.reply_bytes_max() as u64),
            ("session_timeout_max_ms", u64::from(self.timeout_max_ms())),
        ] {
            if value > settings::INT {
                return Err(ConfigError::TooLarge {
                    setting,
                    value,
                    max: settings::INT,
                });
            }
        }
        let others = (self.servers - 1) as u64;
        for (setting, address) in [
            ("listen", Some(self.listen)),
            ("secure_listen", self.secure_address()),
        ] {
            let port = address.map_or(0, |address| u64::from(address.port()));
            if port + others > u64::from(u16::MAX) && port > 0 {
                return Err(ConfigError::NoPorts {
                    setting,
                    port,
                    servers: self.servers,
                });
            }
        }
        if self.reply_bytes_max() < self.reply_bytes_min() {
            return Err(ConfigError::TooSmall {
                setting: "reply_bytes_max",
                value: self.reply_bytes_max() as u64,
                min: self.reply_bytes_min() as u64,
                because: ", for the replies to changes of frame_bytes_max",
            });
        }
        if let Some(given) = &self.super_digest
            && !given.contains(':')
        {
            return Err(ConfigError::NoDigest);
        }
        #[cfg(feature = "control")]
        if let Some(token) = &self.control.token
            && (token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(ConfigError::Token);
        }
        for scheme in &self.enforce_auth_schemes {
            #[cfg(feature = "tls")]
            if scheme == "x509" && self.secure_listen.is_some() {
                continue;
            }
            let exists = match scheme.as_str() {
                "ip" => true,
                "sasl" => cfg!(feature = "sasl"),
                "digest" => self.digest_enabled,
                "key" => self.key_scheme,
                "ensemble" => self.ensemble_names.is_some(),
                _ => false,
            };
            if !exists {
                let scheme = scheme.clone();
                return Err(ConfigError::UnknownScheme { scheme });
            }
        }
        let (min_ms, max_ms) = (self.timeout_min_ms(), self.timeout_max_ms());
        if min_ms > max_ms {
            return Err(ConfigError::TimeoutsCross { min_ms, max_ms });
        }
        #[cfg(feature = "data")]
        self.validate_data()?;
        #[cfg(feature = "tls")]
        self.validate_tls()?;
        Ok(())
    }

    #[cfg(feature = "data")]
    fn validate_data(&self) -> Result<(), ConfigError> {
        for (setting, is_set) in [
            ("save_interval", !self.save_interval.is_zero()),
            ("txn_log", self.txn_log != crate::config::TxnLog::Off),
        ] {
            if is_set && self.data_dir.is_none() {
                let needs = "data_dir";
                return Err(ConfigError::Alone { setting, needs });
            }
        }
        Ok(())
    }

    #[cfg(feature = "tls")]
    fn validate_tls(&self) -> Result<(), ConfigError> {
        let is_secure = self.secure_listen.is_some();
        let (has_certificate, has_key) = (self.tls_certificate.is_some(), self.tls_key.is_some());
        for (setting, is_set, needs, is_there) in [
            (
                "secure_listen",
                is_secure,
                "tls_certificate",
                has_certificate,
            ),
            ("secure_listen", is_secure, "tls_key", has_key),
            ("secure_only", self.secure_only, "secure_listen", is_secure),
            (
                "tls_client_ca",
                self.tls_client_ca.is_some(),
                "secure_listen",
                is_secure,
            ),
            (
                "x509_super_user",
                self.x509_super_user.is_some(),
                "tls_client_ca",
                self.tls_client_ca.is_some(),
            ),
        ] {
            if is_set && !is_there {
                return Err(ConfigError::Alone { setting, needs });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_valid_and_wrong_settings_are_named() {
        assert_eq!(Config::default().validate(), Ok(()));
        let zero = Config {
            tick_time_ms: 0,
            ..Config::default()
        };
        assert_eq!(
            zero.validate().unwrap_err().to_string(),
            "tick_time_ms is 0; it must be at least 1"
        );
        let crossed = Config {
            session_timeout_min_ms: Some(90_000),
            ..Config::default()
        };
        assert_eq!(
            crossed.validate().unwrap_err().to_string(),
            "session_timeout_min_ms 90000 exceeds session_timeout_max_ms 60000"
        );
        #[cfg(feature = "tls")]
        assert_eq!(
            Config {
                secure_listen: Some(Config::default().listen),
                tls_certificate: Some("cert.pem".into()),
                ..Config::default()
            }
            .validate()
            .unwrap_err()
            .to_string(),
            "secure_listen is set without tls_key"
        );
        let digest = Config {
            super_digest: Some("secret".into()),
            ..Config::default()
        };
        let fault = digest.validate().unwrap_err().to_string();
        assert!(fault.starts_with("super_digest has no colon; it must be super:"));
        #[cfg(feature = "control")]
        for token in ["", " ", "a b", "s3cret\n", "schl\u{fc}ssel"] {
            let mut config = Config::default();
            config.control.token = Some(token.into());
            assert_eq!(config.validate(), Err(ConfigError::Token), "{token:?}");
        }
        let large = Config {
            frame_bytes_max: usize::MAX,
            ..Config::default()
        };
        assert!(
            large
                .validate()
                .unwrap_err()
                .to_string()
                .starts_with("frame_bytes_max is ")
        );
        let small = Config {
            reply_bytes_max: Some(1 << 20),
            ..Config::default()
        };
        assert_eq!(
            small.validate().unwrap_err().to_string(),
            "reply_bytes_max is 1048576; it must be at least 4195324, for the replies to changes \
             of frame_bytes_max"
        );
        let largest = Config {
            frame_bytes_max: 500 << 20,
            ..Config::default()
        };
        assert_eq!(largest.validate(), Ok(()));
    }
}
