use std::time::Duration;

use super::*;

/// Applies a file as if `--expiry` were given, too.
fn config_of(text: &str) -> Config {
    let mut config = Config::default();
    apply(text.as_bytes(), &mut config, |given| given == "expiry").unwrap();
    config
}

#[test]
fn sessions_end_at_ticks_unless_the_option_says_otherwise() {
    let mut config = Config::default();
    apply(b"", &mut config, |_| false).unwrap();
    assert!(config.rounds_expiry);
    assert!(!config_of("").rounds_expiry);
}

#[track_caller]
fn assert_refused(text: &str, message: &str) {
    let error = apply(text.as_bytes(), &mut Config::default(), |_| false).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn settings_of_the_file_reach_the_config() {
    let config = config_of(
        "# a comment\n\
         clientPort=2182\nclientPortAddress=0.0.0.0\ntickTime=2000\nminSessionTimeout=1000\n\
         maxSessionTimeout=50000\nmaxClientCnxns=60\nmaxCnxns=7\njute.maxbuffer=0xfffff\n\
         nio.sessionlessCnxnTimeout=8\n4lw.commands.whitelist=ruok, stat\n",
    );
    assert_eq!(config.listen.to_string(), "0.0.0.0:2182");
    assert_eq!(config.tick_time_ms, 2_000);
    assert_eq!(config.session_timeout_min_ms, Some(1_000));
    assert_eq!(config.session_timeout_max_ms, Some(50_000));
    assert_eq!(config.connections_per_address_max, 60);
    assert_eq!(config.connections_max, 7);
    assert_eq!(config.frame_bytes_max, 0xfffff);
    assert_eq!(config.handshake_timeout, Duration::from_millis(8));
    assert_eq!(config.four_letter_whitelist, "ruok, stat");
}

#[test]
fn limits_of_the_file_reach_the_config() {
    let config = config_of(
        "clientPortListenBacklog=9\nnio.sessionlessCnxnTimeout=5000\n\
         connection_throttle_tokens=11\nconnection_throttle_fill_time=12\n\
         connection_throttle_fill_count=13\nrequest_throttle_max_requests=14\n\
         throttled_op_wait_time=15\nlargeRequestThreshold=16\nlargeRequestMaxBytes=17\n",
    );
    let ms = Duration::from_millis;
    assert_eq!(config.listen_backlog, 9);
    assert_eq!(config.handshake_timeout, ms(5_000));
    assert_eq!(config.connection_throttle_tokens, 11);
    assert_eq!(config.connection_throttle_fill_time, ms(12));
    assert_eq!(config.connection_throttle_fill_count, 13);
    assert_eq!(config.turn_requests_max, 14);
    assert_eq!(config.throttled_op_wait_time, ms(15));
    assert_eq!(config.large_request_threshold, 16);
    assert_eq!(config.large_request_bytes_max, 17);
    // ZooKeeper's ways to say "no limit", and a limit above our own.
    let config = config_of(
        "clientPortListenBacklog=-1\nconnection_throttle_tokens=0\n\
         request_throttle_max_requests=20000\nthrottled_op_wait_time=0\n\
         largeRequestThreshold=-1\n",
    );
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn settings_missing_from_the_file_keep_their_defaults() {
    let (config, default) = (config_of("# nothing\n"), Config::default());
    assert_eq!(format!("{config:?}"), format!("{default:?}"));
    let config = config_of("minSessionTimeout=-1\nmaxSessionTimeout=-1\nmaxCnxns=0\n");
    assert_eq!(format!("{config:?}"), format!("{default:?}"));
    // ZooKeeper's way to say "no limit".
    assert_eq!(
        config_of("maxClientCnxns=-1").connections_per_address_max,
        0
    );
}

#[test]
fn last_value_of_a_key_counts_and_earlier_ones_are_ignored() {
    assert_eq!(
        config_of("tickTime=nonsense\ntickTime = 5 \n").tick_time_ms,
        5
    );
}

/// Every key's option exists under its id in clap, and overrides only that key.
#[test]
fn each_option_overrides_its_own_key() {
    use clap::CommandFactory as _;
    let command = crate::args::Args::command();
    let all = "clientPort=1\nclientPortAddress=0.0.0.0\ntickTime=100\nminSessionTimeout=300\n\
               maxSessionTimeout=400\nmaxCnxns=5\nmaxClientCnxns=6\njute.maxbuffer=7\n\
               nio.sessionlessCnxnTimeout=8\n4lw.commands.whitelist=ruok\ndigest.enabled=true\n\
               extendedTypesEnabled=false\nznode.container.checkIntervalMs=1\n\
               znode.container.maxPerMinute=2\nznode.container.maxNeverUsedIntervalMs=3\n\
               clientPortListenBacklog=9\nnio.sessionlessCnxnTimeout=10\n\
               connection_throttle_tokens=11\nconnection_throttle_fill_time=12\n\
               connection_throttle_fill_count=13\nrequest_throttle_max_requests=14\n\
               throttled_op_wait_time=15\nlargeRequestThreshold=16\nlargeRequestMaxBytes=17\n\
               enforceQuota=true\nreconfigEnabled=true\nskipACL=yes\n\
               DigestAuthenticationProvider.enabled=false\n\
               DigestAuthenticationProvider.superDigest=super:x\nallowSaslFailedClients=true\n\
               enforce.auth.enabled=true\nenforce.auth.schemes=ip\nsuperUser=ann\nsuperUser.=bob\n\
               DigestAuthenticationProvider.digestAlg=SHA-256\nreadonlymode.enabled=true\n\
               authProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\n\
               ensembleAuthName=woo";
    let tls = if cfg!(feature = "tls") {
        "\nsecureClientPort=18\nX509AuthenticationProvider.superUser=CN=ann"
    } else {
        ""
    };
    let all = &(all.to_owned() + tls);
    let with_all = format!("{:?}", config_of(all));
    let without = format!("{:?}", Config::default());
    for line in all.lines() {
        let (key, _) = line.split_once('=').unwrap();
        let Some(option) = option_of(key) else {
            continue;
        };
        let mut ids = command.get_arguments().map(|arg| arg.get_id().as_str());
        assert!(ids.any(|id| id == option), "{option}");
        let apply_except = |text: &str| {
            let mut config = Config::default();
            let is_given = |given: &str| given == option || given == "expiry";
            apply(text.as_bytes(), &mut config, is_given).unwrap();
            format!("{config:?}")
        };
        assert_ne!(apply_except(all), with_all, "{key}");
        let same = |line: &&str| {
            let (key, _) = line.split_once('=').unwrap();
            option_of(key) == Some(option)
        };
        let alone: Vec<_> = all.lines().filter(same).collect();
        assert_eq!(apply_except(&alone.join("\n")), without, "{key}");
    }
    // An overridden value must be valid, too.
    let nonsense = apply(b"tickTime=soon", &mut Config::default(), |_| true);
    assert!(nonsense.is_err());
}

#[test]
fn settings_of_znodes_and_access_reach_the_config() {
    let config = config_of(
        "extendedTypesEnabled=FALSE\nznode.container.checkIntervalMs=1\n\
         znode.container.maxPerMinute=2\nznode.container.maxNeverUsedIntervalMs=3\n\
         enforceQuota=true\nreconfigEnabled=true\nskipACL=yes\n\
         DigestAuthenticationProvider.enabled=false\n\
         DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=\n\
         allowSaslFailedClients=true\nsuperUser=ann\nsuperUser.2=bob\n",
    );
    let expected = Config {
        extended_types: false,
        container_check_interval_ms: 1,
        container_max_per_minute: 2,
        container_max_never_used_ms: 3,
        enforce_quota: true,
        reconfig_enabled: true,
        skip_acl: true,
        digest_enabled: false,
        super_digest: Some("super:D/InIHSb7yEEbrWz8b9l71RjZJU=".into()),
        sasl_allow_failed: true,
        sasl_super_users: vec!["ann".into(), "bob".into()],
        ..Config::default()
    };
    assert_eq!(format!("{config:?}"), format!("{expected:?}"));
    assert_eq!(config.super_digest, expected.super_digest);
}

/// ZooKeeper's EnsembleAuthTest and KeyAuthClientTest set these.
#[test]
fn schemes_come_with_their_providers() {
    let provider =
        |class: &str| format!("authProvider.1=org.apache.zookeeper.server.auth.{class}\n");
    let ensemble = provider("EnsembleAuthenticationProvider");
    assert_eq!(config_of(&ensemble).ensemble_names, Some(Vec::new()));
    let names = config_of(&(ensemble + "ensembleAuthName= foo,bar, baz "));
    let expected = ["foo", "bar", "baz"].map(str::to_owned).to_vec();
    assert_eq!(names.ensemble_names, Some(expected));
    assert!(config_of(&provider("KeyAuthenticationProvider")).key_scheme);
    let ignored = apply(b"ensembleAuthName=foo", &mut Config::default(), |_| false).unwrap();
    assert_eq!(
        ignored[0].to_string(),
        "1: ensembleAuthName has no effect: it needs authProvider.1=\
         org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider"
    );
}

/// `sessionRequireClientSASLAuth` overrides the list, as in ZooKeeper's `AuthenticationHelper`.
#[test]
fn enforced_schemes_are_those_of_the_list_or_sasl() {
    let schemes = |text| config_of(text).enforce_auth_schemes;
    let none: [String; 0] = [];
    assert_eq!(schemes("enforce.auth.schemes=ip"), none);
    let list = "enforce.auth.schemes=ip, digest\nenforce.auth.enabled=true\n";
    assert_eq!(schemes(list), ["ip", "digest"]);
    let both = format!("{list}sessionRequireClientSASLAuth=true");
    assert_eq!(schemes(&both), ["sasl"]);
    assert_refused(
        "enforce.auth.enabled=true",
        "1: enforce.auth.enabled is \"true\"; it must be false unless enforce.auth.schemes is set",
    );
}

#[cfg(not(feature = "tls"))]
const TLS: &str =
    "4: ssl.x has no effect: this program is built without TLS (cargo's feature `tls`)";
#[cfg(feature = "tls")]
const TLS: &str =
    "4: ssl.x has no effect: set up TLS with --tls-cert, --tls-key and --tls-client-ca";

#[cfg(not(feature = "tls"))]
#[test]
fn secure_port_needs_a_program_with_tls() {
    let both = b"secureClientPort=2281\nclientPort=2181\n";
    let ignored = apply(both, &mut Config::default(), |_| false).unwrap();
    let warning = "1: secureClientPort has no effect: this program is built without TLS (cargo's feature `tls`)";
    assert_eq!(ignored[0].to_string(), warning);
    // A plain port instead would expose what TLS should protect.
    assert_refused(
        "secureClientPort=2281",
        "1: secureClientPort is \"2281\"; it must be used with a clientPort, or with a program \
         built with cargo's feature `tls`",
    );
}

#[cfg(feature = "tls")]
#[test]
fn secure_port_is_taken_with_its_address() {
    let mut config = Config::default();
    let text = "secureClientPort=2281\nsecureClientPortAddress=127.0.0.2\n\
                X509AuthenticationProvider.superUser=CN=admin\n";
    let ignored = apply(text.as_bytes(), &mut config, |_| false).unwrap();
    assert!(ignored.is_empty());
    assert_eq!(
        config.secure_listen,
        Some("127.0.0.2:2281".parse().unwrap())
    );
    assert_eq!(config.x509_super_user.as_deref(), Some("CN=admin"));
    assert!(config.secure_only);
    let mut config = Config::default();
    let text = b"secureClientPort=2282\nclientPortAddress=127.0.0.3\nclientPort=2181";
    apply(text, &mut config, |_| false).unwrap();
    assert!(!config.secure_only);
    assert_eq!(
        config.secure_listen,
        Some("127.0.0.3:2282".parse().unwrap())
    );
}

#[test]
fn keys_without_effect_are_reported_with_line_and_reason() {
    let text = "initLimit=4\n\nserver.1=localhost:1:2\nssl.x=y\nfoo bar\n\
                globalOutstandingLimit=1000\n\
                authProvider.1=org.apache.zookeeper.server.auth.IPAuthenticationProvider\n\
                authProvider.2=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
                autopurge.purgeInterval=1\nsslQuorum=false\nsnapCount=9\n\
                authProvider.3=org.apache.zookeeper.test.InvalidAuthProvider\n";
    let ignored = apply(text.as_bytes(), &mut Config::default(), |_| false).unwrap();
    let ignored: Vec<_> = ignored.iter().map(ToString::to_string).collect();
    assert_eq!(
        ignored,
        [
            "1: initLimit has no effect: it is for an ensemble, and this is a single server",
            "3: server.1 has no effect: it is for an ensemble, and this is a single server",
            TLS,
            "5: foo has no effect: it is unknown",
            "6: globalOutstandingLimit has no effect: this server never reads from a connection while \
             its requests wait",
            "9: autopurge.purgeInterval has no effect: ZooKeeper has it, this server does not",
            "10: sslQuorum has no effect: it is for an ensemble, and this is a single server",
            "11: snapCount has no effect: state is kept only with --data-dir; set --snap-count with it",
            // ZooKeeper's AuthTest sets it. It was refused.
            "12: authProvider.3 has no effect: this server does not have the class, which is Java code; \
             clients of its scheme are refused (AUTHFAILED), as by a ZooKeeper that cannot load it",
        ]
    );
}

#[test]
fn invalid_values_are_refused_with_line_key_value_and_range() {
    assert_refused(
        "\ntickTime=soon",
        "2: tickTime is \"soon\"; it must be a whole number from 1 to 2147483647",
    );
    assert_refused(
        "tickTime=0",
        "1: tickTime is \"0\"; it must be a whole number from 1 to 2147483647",
    );
    assert_refused(
        "clientPort=65536",
        "1: clientPort is \"65536\"; it must be a whole number from 0 to 65535",
    );
    assert_refused(
        "clientPort=0x-1",
        "1: clientPort is \"0x-1\"; it must be a whole number from 0 to 65535",
    );
    assert_refused(
        "minSessionTimeout=-2",
        "1: minSessionTimeout is \"-2\"; it must be a whole number from -1 to 2147483647",
    );
    assert_refused(
        "clientPortAddress=",
        "1: clientPortAddress is \"\"; it must be an address or the name of this host",
    );
    assert_refused(
        "enforceQuota=yes",
        "1: enforceQuota is \"yes\"; it must be true or false",
    );
    assert_refused(
        "skipACL=true",
        "1: skipACL is \"true\"; it must be yes or no",
    );
    assert_refused(
        "DigestAuthenticationProvider.superDigest=secret",
        "1: DigestAuthenticationProvider.superDigest must be USER:DIGEST, where DIGEST is the base64 \
         of the SHA-1 of USER:PASSWORD",
    );
    assert_refused(
        "DigestAuthenticationProvider.digestAlg=SHA-3",
        "1: DigestAuthenticationProvider.digestAlg is \"SHA-3\"; it must be a digest algorithm of \
         Java: MD5, SHA1, SHA-256, SHA3-256, ...",
    );
    assert_refused(
        "a=\\u12",
        "1: \\u must be followed by four hexadecimal digits",
    );
}
