//! Replaces `sasl.rs` in builds without the feature `sasl`: there are no users and no exchanges.

/// Logins by SASL. Needs the feature `sasl`.
#[derive(Clone, Debug)]
pub enum SaslSettings {}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Exchange {}
