//! Why a key of a `zoo.cfg` has no effect here.
//!
//! The keys are those that the sources of 3.9.5 name.

/// The reason, for a key that this server does not take.
pub(super) fn reason(key: &str) -> &'static str {
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| key.starts_with(prefix));
    if starts_with(&ENSEMBLE) {
        "it is for an ensemble, and this is a single server"
    } else if starts_with(&TLS) {
        if cfg!(feature = "tls") {
            "TLS is set up with --tls-cert, --tls-key and --tls-client-ca"
        } else {
            "this program is built without TLS, cargo's feature `tls`"
        }
    } else if key == "globalOutstandingLimit" {
        "a connection whose requests wait is never read here"
    } else if starts_with(&ORIGINAL_ALONE) {
        "ZooKeeper has it, this server does not"
    } else {
        "it is unknown here"
    }
}

const ENSEMBLE: [&str; 26] = [
    "commitProcessor.",
    "connectToLearnerMasterLimit",
    "dynamicConfigFile",
    "electionAlg",
    "electionPortBindRetry",
    "fastleader.",
    "follower.",
    "forceSnapshotSync",
    "forward_learner_requests",
    "group",
    "initLimit",
    "leader",
    "learner.",
    "localSessions",
    "multiAddress.",
    "observer",
    "oraclePath",
    "peerType",
    "portUnification",
    "quorum",
    "server.",
    "ssl.quorum.",
    "sslQuorum",
    "standaloneEnabled",
    "sync",
    "weight",
];

const TLS: [&str; 6] = [
    "client.certReload",
    "client.portUnification",
    "netty.server.",
    "secureClientPort",
    "ssl.",
    "X509AuthenticationProvider.",
];

/// Ways of ZooKeeper to use threads, memory and disk, and what is not served.
const ORIGINAL_ALONE: [&str; 50] = [
    "DigestAuthenticationProvider.",
    "IPAuthenticationProvider.",
    "SASLAuthenticationProvider.",
    "admin.",
    "audit.",
    "autopurge.",
    "bitHashCacheSize",
    "clientTcpKeepAlive",
    "closeSessionTxn.",
    "commitLogCount",
    "dataLogDir",
    "datadir.autocreate",
    "db.autocreate",
    "disableAutoWatchReset",
    "emulate353TTLNodes",
    "enableEagerACLCheck",
    "flushDelay",
    "forceSync",
    "fsync.",
    "intBufferStartingSizeBytes",
    "jmx.",
    "jvm.pause.",
    "kerberos.",
    "kinit",
    "letAnySaslUserDoX",
    "maxBatchSize",
    "maxGetChildrenResponseCacheSize",
    "maxInProcessingDeadWatchers",
    "maxResponseCacheSize",
    "maxWriteQueuePollTime",
    "messageTracker.",
    "metricsProvider.",
    "netty.",
    "nio.",
    "pathStats.",
    "preAllocSize",
    "request.",
    "request_",
    "requireKerberosConfig",
    "sasl.",
    "security.auth_to_local",
    "serializeLastProcessedZxid.",
    "serverCnxnFactory",
    "snapCount",
    "snapSizeLimitInKb",
    "snapshot",
    "tcpKeepAlive",
    "txnLogSizeLimitInKb",
    "watchManagerName",
    "watcherClean",
];
