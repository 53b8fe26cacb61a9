//! One line of a `zoo.cfg`: its value as what it stands for, or what is wrong with it.

use std::net::{IpAddr, ToSocketAddrs as _};

use minikeeper::{
    Config,
    settings::{Form, KeyForm, Setting, Value},
};

use crate::properties::{PropertiesError, Property};

/// A file that cannot be followed. Displayed behind the file's name and a colon.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ZooCfgError {
    /// A value that makes no sense, and is not shown because it is a secret.
    #[error("{line}: {key} must be {allowed}")]
    Secret {
        /// Where it stands; the first line is 1.
        line: usize,
        /// The setting.
        key: String,
        /// What could be written there.
        allowed: &'static str,
    },
    /// A value that makes no sense.
    #[error("{line}: {key} is {value:?}; it must be {allowed}")]
    Value {
        /// Where it stands; the first line is 1.
        line: usize,
        /// The setting.
        key: String,
        /// What is written there.
        value: String,
        /// What could be.
        allowed: String,
    },
    /// No properties file.
    #[error("{}: {source}", source.line)]
    Properties {
        /// Which says what.
        #[from]
        source: PropertiesError,
    },
}

/// A key without effect, and why. Displayed behind the file's name and a colon.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}: {key} has no effect: {reason}")]
pub(crate) struct Ignored {
    line: usize,
    key: String,
    reason: &'static str,
}

/// A property without the blanks at both ends, which ZooKeeper takes off too.
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

    /// A whole number; in hexadecimal as well, as Java reads `jute.maxbuffer=0xfffff`.
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

    /// A limit; less than 1 is "no limit" in ZooKeeper, and `None` here.
    pub(crate) fn limit(&self) -> Result<Option<u64>, ZooCfgError> {
        let max = self.whole(i32::MIN.into(), i32::MAX.into())?;
        Ok(u64::try_from(max).ok().filter(|&max| max > 0))
    }

    /// Sets a setting of the table to what stands here.
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
                // Without a limit of ZooKeeper's there is still our own.
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

    /// What stands between commas.
    pub(crate) fn list(&self) -> Vec<String> {
        let parts = self.value.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// The first address of a name, one of IPv4 if there is any, as Java prefers it.
    pub(crate) fn address(&self) -> Result<IpAddr, ZooCfgError> {
        let resolved = (self.value, 0).to_socket_addrs();
        let addresses: Vec<_> = resolved.map_or_else(|_| Vec::new(), Iterator::collect);
        let first = addresses.iter().find(|address| address.is_ipv4());
        match first.or_else(|| addresses.first()) {
            Some(address) if !self.value.is_empty() => Ok(address.ip()),
            _ => Err(self.must_be("an address or the name of this host")),
        }
    }

    /// What ZooKeeper's `DigestAuthenticationProvider` prints for `super:password`.
    fn digest(&self) -> Result<String, ZooCfgError> {
        match self.value.split_once(':') {
            Some((user, digest)) if !user.is_empty() && !digest.is_empty() => {
                Ok(self.value.to_owned())
            }
            _ => Err(ZooCfgError::Secret {
                line: self.line,
                key: self.key.to_owned(),
                allowed: "USER:DIGEST, with the Base64 form of SHA-1 of USER:PASSWORD",
            }),
        }
    }
}
