//! Says why a key of a `zoo.cfg` has no effect here.
//!
//! The keys are those in the sources of ZooKeeper 3.9.5.

/// Returns the reason for a key that this server does not use.
pub(super) fn reason(key: &str) -> &'static str {
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| key.starts_with(prefix));
    if starts_with(&ENSEMBLE) {
        "it is for an ensemble, and this is a single server"
    } else if starts_with(&TLS) {
        if cfg!(feature = "tls") {
            "set up TLS with --tls-cert, --tls-key and --tls-client-ca"
        } else {
            "this program is built without TLS (cargo's feature `tls`)"
        }
    } else if key == "globalOutstandingLimit" {
        "this server never reads from a connection while its requests wait"
    } else if key == "snapCount" {
        "state is kept only with --data-dir; set --snap-count with it"
    } else if starts_with(&ZOOKEEPER_ONLY) {
        "ZooKeeper has it, this server does not"
    } else {
        "it is unknown"
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

/// ZooKeeper's settings for threads, memory and disk, and for features that are not implemented here.
const ZOOKEEPER_ONLY: [&str; 49] = [
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
    "snapSizeLimitInKb",
    "snapshot",
    "tcpKeepAlive",
    "txnLogSizeLimitInKb",
    "watchManagerName",
    "watcherClean",
];
