//! The authentication schemes: the identities as which clients authenticate, and the valid ids in
//! access lists.
//!
//! | file | scheme |
//! | --- | --- |
//! | [`digest`] | `digest`: user name and hash of the password |
//! | [`ip`] | `ip`: address, or address and prefix length |
//! | [`sasl`], [`sasl_directives`] | `sasl`: the server's side of DIGEST-MD5 |
//! | [`x509`] | `x509`: subject names of certificates |
//! | [`java_text`] | how Java decodes text and reads numbers, which clients can observe |
//!
//! The schemes `ensemble` and `key` are one function each, in this file. `no_sasl.rs` replaces
//! [`sasl`] in builds without the feature `sasl`. All functions here are pure:
//! `state/identities.rs` keeps the identities of connections, and `ops/auth.rs` serves the
//! requests.

pub(crate) mod digest;
pub(crate) mod ip;
pub(crate) mod java_text;
#[cfg(feature = "sasl")]
pub(crate) mod sasl;
#[cfg(not(feature = "sasl"))]
#[path = "no_sasl.rs"]
pub(crate) mod sasl;
#[cfg(feature = "sasl")]
mod sasl_directives;
pub(crate) mod x509;

use crate::auth::java_text::{decode_utf8, parse_int};

/// Returns whether data for the `ensemble` scheme names one of these ensembles. Empty data is
/// accepted, and so is any data if no ensembles are configured.
///
/// Source: ZooKeeper's `EnsembleAuthenticationProvider`.
pub(crate) fn is_of_ensemble(names: &[String], data: &[u8]) -> bool {
    data.is_empty() || names.is_empty() || names.iter().any(|name| *name == decode_utf8(data))
}

/// Returns whether data for the `key` scheme is a multiple of the key; both are numbers as text.
///
/// Source: ZooKeeper's sample `KeyAuthenticationProvider`.
pub(crate) fn is_multiple_of_key(key: &[u8], data: &[u8]) -> bool {
    let (key, data) = (decode_utf8(key), decode_utf8(data));
    let (Some(key), Some(data)) = (parse_int(&key, 10), parse_int(&data, 10)) else {
        return false;
    };
    key == 0 || data.wrapping_rem(key) == 0
}

/// Returns whether a name with an `@` does not have the form `service/host@realm`, where the host
/// is optional.
///
/// ZooKeeper parses every user's name as a Kerberos name, and also the ids of `sasl` entries in
/// access lists. Names without an `@` are always valid.
pub(crate) fn is_malformed_principal(name: &str) -> bool {
    name.split_once('@')
        .is_some_and(|(front, realm)| realm.contains(['/', '@']) || front.matches('/').count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of ZooKeeper's KeyAuthClientTest, and others with the results of Java's `parseInt`
    /// and `%`.
    #[test]
    fn data_for_the_key_scheme_must_be_a_multiple_of_the_key() {
        for (key, data, is_met) in [
            ("5", "25", true),
            ("5", "125", true),
            ("5", "26", false),
            ("5", "0", true),
            ("5", "-10", true),
            ("-1", "-2147483648", true),
            ("0", "7", true),
            ("5", "", false),
            ("", "5", false),
            ("five", "5", false),
            ("5", " 5", false),
            ("5", "2147483650", false),
        ] {
            let is = is_multiple_of_key(key.as_bytes(), data.as_bytes());
            assert_eq!(is, is_met, "{key:?} and {data:?}");
        }
    }
}
