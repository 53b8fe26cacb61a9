//! The clock and the engine's settings that follow from a server's settings.

#[cfg(feature = "sasl")]
use minikeeper_engine::SaslSettings;
use minikeeper_engine::Settings;
use minikeeper_protocol::{SessionId, Zxid};

#[cfg(feature = "sasl")]
use crate::random::nonce_seed;
use crate::{clock::Clock, config::Config, random::hash_seed};

/// The limit of the undo log since a [`Snapshot`](../minikeeper/struct.Snapshot.html). Unit: bytes.
const UNDO_BYTES_MAX: usize = 256 << 20;

impl Config {
    /// Returns the clock of a new universe.
    pub fn new_clock(&self) -> Clock {
        if self.manual_clock {
            Clock::frozen()
        } else {
            Clock::running()
        }
    }

    /// Returns the engine's settings.
    pub fn engine_settings(&self, clock: &Clock) -> Settings {
        let wall_ms = clock.now().wall_ms;
        // A restarted server starts below a zxid that its clients have seen only if the previous one made
        // more than a million changes per millisecond.
        let zxid = self
            .initial_zxid
            .unwrap_or(if self.manual_clock { 0 } else { wall_ms << 20 });
        Settings {
            tick_ms: self.tick_time_ms,
            rounds_expiry: self.rounds_expiry,
            session_timeout_min_ms: self.timeout_min_ms(),
            session_timeout_max_ms: self.timeout_max_ms(),
            zxid: Zxid(zxid),
            // `docs/zookeeper-protocol.md` section 6.6: server number 1, then the time, then a counter.
            first_session_id: SessionId(
                (1 << 56) | (((wall_ms << 24).cast_unsigned() >> 8).cast_signed()),
            ),
            sessions_max: self.sessions_max,
            watches_max: self.watches_max,
            tree_bytes_max: self.tree_bytes_max,
            reply_bytes_max: self.reply_bytes_max(),
            multi_operations_max: self.multi_operations_max,
            acl_entries_max: self.acl_entries_max,
            identities_max: self.identities_max,
            undo_bytes_max: UNDO_BYTES_MAX,
            extended_types: self.extended_types,
            java_listing_order: self.java_listing_order,
            container_check_interval_ms: self.container_check_interval_ms,
            container_max_per_minute: self.container_max_per_minute,
            container_max_never_used_ms: self.container_max_never_used_ms,
            enforce_quota: self.enforce_quota,
            reconfig_enabled: self.reconfig_enabled,
            skip_acl: self.skip_acl,
            digest_enabled: self.digest_enabled,
            digest_algorithm: self.digest_algorithm,
            ensemble_names: self.ensemble_names.clone(),
            key_scheme: self.key_scheme,
            super_digest: self.super_digest.clone(),
            #[cfg(not(feature = "sasl"))]
            sasl: None,
            #[cfg(feature = "sasl")]
            sasl: (!self.sasl_users.is_empty()).then(|| SaslSettings {
                users: self.sasl_users.clone(),
                super_users: self.sasl_super_users.clone(),
                nonce_seed: nonce_seed(),
                allow_failed: self.sasl_allow_failed,
            }),
            #[cfg(feature = "tls")]
            x509: self.secure_listen.is_some(),
            #[cfg(not(feature = "tls"))]
            x509: false,
            #[cfg(feature = "tls")]
            x509_super_user: self.x509_super_user.clone(),
            #[cfg(not(feature = "tls"))]
            x509_super_user: None,
            enforce_auth_schemes: self.enforce_auth_schemes.clone(),
            digests: self.tree_digests,
            hash_seed: hash_seed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a constant seed, any client could compute paths that collide.
    #[test]
    fn servers_hash_with_different_seeds() {
        let config = Config::default();
        let clock = config.new_clock();
        let mut drawn: Vec<u64> = (0..8)
            .flat_map(|_| config.engine_settings(&clock).hash_seed)
            .collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 16, "no number twice");
    }
}
