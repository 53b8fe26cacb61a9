//! Who a client is: the identities that each scheme proves.

pub(crate) mod digest_and_ip;
pub(crate) mod identities;
pub(crate) mod java_text;
pub(crate) mod sasl;
pub(crate) mod sasl_directives;
pub(crate) mod x509;
