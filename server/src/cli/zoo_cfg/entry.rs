//! Parses the value of one line of a `zoo.cfg`.

use std::net::{IpAddr, ToSocketAddrs as _};

use minikeeper::Config;

use minikeeper_core::config::settings::{Form, KeyForm, Setting, Value};

use crate::properties::{PropertiesError, Property};

/// A fault in a file. Displayed after the file's name and a colon.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ZooCfgError {
    /// An invalid value that is not shown because it is a secret.
    #[error("{line}: {key} must be {allowed}")]
    Secret {
        /// The line; the first line is 1.
        line: usize,
        /// The setting.
        key: String,
        /// The values allowed.
        allowed: &'static str,
    },
    /// An invalid value.
    #[error("{line}: {key} is {value:?}; it must be {allowed}")]
    Value {
        /// The line; the first line is 1.
        line: usize,
        /// The setting.
        key: String,
        /// The value.
        value: String,
        /// The values allowed.
        allowed: String,
    },
    /// Not a properties file.
    #[error("{}: {source}", source.line)]
    Properties {
        /// The fault.
        #[from]
        source: PropertiesError,
    },
}

/// A key without effect, and why. Displayed after the file's name and a colon.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}: {key} has no effect: {reason}")]
pub(crate) struct Ignored {
    line: usize,
    key: String,
    reason: &'static str,
}

/// A property, trimmed as ZooKeeper does.
pub(crate) struct ZooCfgEntry<'a> {
    line: usize,
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
}

impl<'a> ZooCfgEntry<'a> {
    pub(crate) fn new(property: &'a Property) -> Self {
        Self {
            line: property.line,
            key: property.key.trim(),
            value: property.value.trim(),
        }
    }

    pub(crate) fn must_be(&self, allowed: impl Into<String>) -> ZooCfgError {
        ZooCfgError::Value {
            line: self.line,
            key: self.key.to_owned(),
            value: self.value.to_owned(),
            allowed: allowed.into(),
        }
    }

    pub(crate) fn ignored(&self, reason: &'static str) -> Ignored {
        Ignored {
            line: self.line,
            key: self.key.to_owned(),
            reason,
        }
    }

    /// Parses a whole number, decimal or hexadecimal, as Java reads `jute.maxbuffer=0xfffff`.
    pub(crate) fn whole(&self, min: i64, max: i64) -> Result<i64, ZooCfgError> {
        let number = match self.value.strip_prefix("0x") {
            Some(digits) if !digits.starts_with(['+', '-']) => i64::from_str_radix(digits, 16),
            _ => self.value.parse(),
        };
        number
            .ok()
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.must_be(format!("a whole number from {min} to {max}")))
    }

    /// Parses a limit; less than 1 means "no limit" in ZooKeeper, and is `None` here.
    pub(crate) fn limit(&self) -> Result<Option<u64>, ZooCfgError> {
        let max = self.whole(i32::MIN.into(), i32::MAX.into())?;
        Ok(u64::try_from(max).ok().filter(|&max| max > 0))
    }

    /// Sets a setting of the table to this value.
    pub(crate) fn set(&self, setting: &Setting, config: &mut Config) -> Result<(), ZooCfgError> {
        let Some((_, form)) = setting.spec.key else {
            return Ok(());
        };
        let number = |number: i64| u64::try_from(number).ok().map(Value::Number);
        let value = match form {
            KeyForm::Whole(min, max) => number(self.whole(min, max)?),
            KeyForm::Unset => number(self.whole(-1, i32::MAX.into())?),
            KeyForm::Limit => match (self.limit()?, setting.spec.form) {
                (None, Form::Number { min: 0, .. }) => Some(Value::Number(0)),
                // Without ZooKeeper's limit, our own default applies.
                (max, _) => max.map(Value::Number),
            },
            KeyForm::Boolean => Some(Value::Switch(self.boolean()?)),
            KeyForm::YesOrNo => Some(Value::Switch(self.yes_or_no()?)),
            KeyForm::Text => Some(Value::Text(self.value.to_owned())),
            KeyForm::DigestId => Some(Value::Text(self.digest()?)),
            KeyForm::Named(what) => Some(Value::Text(self.not_empty(what)?.to_owned())),
        };
        if let Some(value) = value {
            setting.set(config, value);
        }
        Ok(())
    }

    pub(crate) fn boolean(&self) -> Result<bool, ZooCfgError> {
        match self.value {
            value if value.eq_ignore_ascii_case("true") => Ok(true),
            value if value.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.must_be("true or false")),
        }
    }

    pub(crate) fn yes_or_no(&self) -> Result<bool, ZooCfgError> {
        match self.value {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(self.must_be("yes or no")),
        }
    }

    pub(crate) fn not_empty(&self, allowed: &str) -> Result<&'a str, ZooCfgError> {
        if self.value.is_empty() {
            return Err(self.must_be(allowed));
        }
        Ok(self.value)
    }

    /// Splits the value at commas.
    pub(crate) fn list(&self) -> Vec<String> {
        let parts = self.value.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns the first address of a host, preferring IPv4 as Java does.
    pub(crate) fn address(&self) -> Result<IpAddr, ZooCfgError> {
        let resolved = (self.value, 0).to_socket_addrs();
        let addresses: Vec<_> = resolved.map_or_else(|_| Vec::new(), Iterator::collect);
        let first = addresses.iter().find(|address| address.is_ipv4());
        match first.or_else(|| addresses.first()) {
            Some(address) if !self.value.is_empty() => Ok(address.ip()),
            _ => Err(self.must_be("an address or the name of this host")),
        }
    }

    /// Parses a digest identity, as ZooKeeper's `DigestAuthenticationProvider` prints it for
    /// `super:password`.
    fn digest(&self) -> Result<String, ZooCfgError> {
        match self.value.split_once(':') {
            Some((user, digest)) if !user.is_empty() && !digest.is_empty() => {
                Ok(self.value.to_owned())
            }
            _ => Err(ZooCfgError::Secret {
                line: self.line,
                key: self.key.to_owned(),
                allowed: "USER:DIGEST, where DIGEST is the base64 of the SHA-1 of USER:PASSWORD",
            }),
        }
    }
}
