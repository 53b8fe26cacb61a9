//! The server's side of a DIGEST-MD5 exchange: a challenge, the client's response, the proof.
//!
//! ```text
//! client                                  server
//!   empty token (or any other)   -->
//!                                <--   realm="zk-sasl-md5",nonce="...",charset=utf-8,...
//!   username="bob",response=...  -->
//!                                <--   rspauth=...
//! ```
//!
//! Source: `docs/zookeeper-protocol.md` section 9.10 and RFC 2831. Where ZooKeeper is stricter,
//! laxer or different, this follows ZooKeeper, which uses OpenJDK's `DigestMD5Server` with the
//! realm, protocol and host below.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use md5::Md5;
use sha1::{Digest as _, Sha1};

use crate::{
    auth::{
        is_malformed_principal,
        java_text::{decode_utf8, eq_ignore_case, parse_int},
        sasl_directives::{DirectiveKey, Directives},
    },
    input::Secret,
};

/// The realm, and the host in the uri, independent of the server's address.
const REALM: &str = "zk-sasl-md5";
/// Compared without regard to case, but hashed as the client spells it.
const DIGEST_URI: &str = "zookeeper/zk-sasl-md5";
/// A longer token is refused unread. Source: `MAX_RESPONSE_LENGTH`.
const TOKEN_BYTES_MAX: usize = 4096;

/// Logins by SASL, with the mechanism DIGEST-MD5.
#[derive(Clone, Debug, Default)]
pub struct SaslSettings {
    /// Names and passwords.
    pub users: Vec<(String, Secret)>,
    /// Users that may do everything. Source: `zookeeper.superUser`.
    pub super_users: Vec<String>,
    /// The seed of nonces: random for security, fixed where a run must be reproducible.
    pub nonce_seed: [u8; 32],
    /// Whether a connection survives a failed exchange. Source: `allowSaslFailedClients`.
    pub allow_failed: bool,
}

/// The state of a connection's exchange.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Exchange {
    /// No token has arrived: the reply to any token is a challenge.
    #[default]
    Fresh,
    /// This nonce has been sent: the next token is the response.
    Challenged(String),
    /// The exchange has succeeded or failed; a connection cannot start another.
    Over,
}

/// The server's response to a token.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The exchange continues with this token.
    Challenge(Vec<u8>),
    /// The client is this user. The token proves that the server also knows the password.
    Done { user: String, proof: Vec<u8> },
}

/// Why a token ended the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SaslError {
    /// The reply is a refusal. The fault is for the log; it quotes nothing that the client sent.
    Refused(&'static str),
    /// The connection ends without a reply, as in ZooKeeper when parsing a number or a name throws
    /// an exception.
    Unanswered(&'static str),
}

impl Exchange {
    /// Handles the client's next token. Calls `nonce` if the reply is a challenge.
    ///
    /// # Errors
    /// The fault of the token. The exchange is then over, unless the token was only too long.
    pub(crate) fn step<'a>(
        &mut self,
        token: &[u8],
        nonce: impl FnOnce() -> String,
        users: impl FnOnce(&str) -> Option<&'a str>,
    ) -> Result<Step, SaslError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(SaslError::Refused("token longer than 4096 bytes"));
        }
        match std::mem::replace(self, Self::Over) {
            Self::Fresh => {
                let nonce = nonce();
                let token = challenge(&nonce);
                *self = Self::Challenged(nonce);
                Ok(Step::Challenge(token))
            }
            Self::Challenged(nonce) => {
                finish(&nonce, users, token).map(|(proof, user)| Step::Done { user, proof })
            }
            Self::Over => Err(SaslError::Refused("token after the end of the exchange")),
        }
    }
}

/// Computes a nonce of 40 characters: number `counter` from a secret seed.
///
/// Different counters give different nonces, so one seed serves all challenges of a server.
pub(crate) fn nonce(seed: &[u8], counter: u64) -> String {
    let half = |which: u8| {
        Sha1::new()
            .chain_update(seed)
            .chain_update(counter.to_be_bytes())
            .chain_update([which])
            .finalize()
    };
    // 30 bytes, as many as ZooKeeper's.
    let bytes: Vec<u8> = half(0).into_iter().chain(half(1)).take(30).collect();
    STANDARD.encode(bytes)
}

/// Returns the first token that the server sends.
pub(crate) fn challenge(nonce: &str) -> Vec<u8> {
    format!("realm=\"{REALM}\",nonce=\"{nonce}\",charset=utf-8,algorithm=md5-sess").into_bytes()
}

/// Checks the response to the challenge with this nonce. Returns the proof to send back, and the
/// user. `users` returns the password of a user.
///
/// # Errors
/// The first fault, in ZooKeeper's order of checks.
pub(crate) fn finish<'a>(
    nonce: &str,
    users: impl FnOnce(&str) -> Option<&'a str>,
    response: &[u8],
) -> Result<(Vec<u8>, String), SaslError> {
    use SaslError::{Refused, Unanswered};

    if response.len() > TOKEN_BYTES_MAX {
        return Err(Refused("token longer than 4096 bytes"));
    }
    let directives = Directives::parse(response).map_err(Refused)?;
    let text = |key| directives.get(key).map(decode_utf8);
    if text(DirectiveKey::Charset).is_some_and(|charset| charset != "utf-8") {
        return Err(Refused("charset other than utf-8"));
    }
    if text(DirectiveKey::Maxbuf).is_some_and(|number| parse_int(&number, 10).is_none()) {
        return Err(Unanswered("maxbuf is not a number"));
    }
    let username = text(DirectiveKey::Username).ok_or(Refused("no username"))?;
    if text(DirectiveKey::Realm).as_deref() != Some(REALM) {
        return Err(Refused("realm other than the server's"));
    }
    if directives.get(DirectiveKey::Nonce) != Some(nonce.as_bytes()) {
        return Err(Refused("nonce other than the challenge's"));
    }
    let cnonce = directives
        .get(DirectiveKey::Cnonce)
        .ok_or(Refused("no cnonce"))?;
    // RFC 2831 calls it `nc`, which ZooKeeper ignores and so accepts with any value.
    match text(DirectiveKey::NonceCount).map(|count| parse_int(&count, 16)) {
        None | Some(Some(1)) => {}
        Some(Some(_)) => return Err(Refused("nonce-count other than 1")),
        Some(None) => return Err(Unanswered("nonce-count is not a number")),
    }
    if text(DirectiveKey::Qop).is_some_and(|qop| qop != "auth") {
        return Err(Refused("qop other than auth"));
    }
    let uri = text(DirectiveKey::DigestUri)
        .filter(|uri| eq_ignore_case(uri, DIGEST_URI))
        .ok_or(Refused("digest-uri other than the server's"))?;
    let given = directives
        .get(DirectiveKey::Response)
        .ok_or(Refused("no response"))?;
    if username.is_empty() {
        return Err(Unanswered("empty username"));
    }
    let password = users(&username).ok_or(Refused("unknown user"))?;

    let user_hash = Md5::new()
        .chain_update(latin1_or_utf8(&username))
        .chain_update(b":")
        .chain_update(REALM)
        .chain_update(b":")
        .chain_update(latin1_or_utf8(password))
        .finalize();
    let mut a1 = [&user_hash[..], b":", nonce.as_bytes(), b":", cnonce].concat();
    if let Some(authzid) = directives.get(DirectiveKey::Authzid) {
        a1.push(b':');
        a1.extend(authzid);
    }
    let a1 = md5_hex(&a1);
    let value = |method: &str| {
        let a2 = md5_hex(format!("{method}:{uri}").as_bytes());
        let (a1, a2, nonce) = (a1.as_bytes(), a2.as_bytes(), nonce.as_bytes());
        md5_hex(&[a1, b":", nonce, b":00000001:", cnonce, b":auth:", a2].concat())
    };
    if !is_same(given, value("AUTHENTICATE").as_bytes()) {
        return Err(Refused("wrong password"));
    }
    if is_malformed_principal(&username) {
        return Err(Unanswered("username is a malformed Kerberos name"));
    }
    // At this point ZooKeeper lets a user whose name has a realm (`bob@R`) act as any user that the
    // response names in authzid. That is a security hole, so it is not followed: the identity is
    // always the user whose password the client knows.
    let proof = format!("rspauth={}", value("")).into_bytes();
    Ok((proof, username.into_owned()))
}

/// Encodes a text for hashing: in ISO 8859-1 if possible, else in UTF-8.
fn latin1_or_utf8(text: &str) -> Vec<u8> {
    let latin1 = text.chars().map(|c| u8::try_from(c).ok());
    latin1
        .collect::<Option<_>>()
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

fn md5_hex(bytes: &[u8]) -> String {
    let digest = Md5::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares in a time that does not depend on the position of the first difference.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |all, (l, r)| all | (l ^ r));
    left.len() == right.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One captured exchange.
    struct Captured {
        user: &'static str,
        password: &'static str,
        nonce: &'static str,
        response: &'static str,
        proof: &'static str,
    }

    /// Captured between OpenJDK 17's client and ZooKeeper's server, and (the last) between kazoo
    /// with pure-sasl and a live 3.9.5.
    const CAPTURED: [Captured; 8] = [
        Captured {
            user: "bob",
            password: "secret",
            nonce: "bUdViOiy1dHno+A4z1PR8iokigjW3A5Yj66Vs7SA",
            response: r#"charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="bUdViOiy1dHno+A4z1PR8iokigjW3A5Yj66Vs7SA",nc=00000001,cnonce="isckRBFE/3s0N5ZpcVo3OrRtcCtzk6EfMxOvs3kw",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=563b0f34a5ec61cafbf388bfa0af7fb8,qop=auth"#,
            proof: "rspauth=57de229b271d55eb00dcfa47fb5f3405",
        },
        // Hashed in ISO 8859-1.
        Captured {
            user: "ann",
            password: "pässwörd",
            nonce: "e11xfHYNEkqWvOzwMIjU0TCfcnx6g20Lk7gHCncV",
            response: r#"charset=utf-8,username="ann",realm="zk-sasl-md5",nonce="e11xfHYNEkqWvOzwMIjU0TCfcnx6g20Lk7gHCncV",nc=00000001,cnonce="GQQ09HQdAGxg/W45P+QlhNcfnNHWV4ld5lFLEE8T",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=60d1c4040a8e8f397c89f6e808bd01c9,qop=auth"#,
            proof: "rspauth=fca63afb89f5e5be5bafaeb98ed63e18",
        },
        // Hashed in UTF-8.
        Captured {
            user: "eve",
            password: "пароль",
            nonce: "G+b0YAR9iH5qnAsF70KCO7NVQOtf9VUjBCZHjMoT",
            response: r#"charset=utf-8,username="eve",realm="zk-sasl-md5",nonce="G+b0YAR9iH5qnAsF70KCO7NVQOtf9VUjBCZHjMoT",nc=00000001,cnonce="UHUb880aJcd3dQ+th11OV1tVIN01DkqhuPeojmYQ",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=4d88ed985e1c6365fb57aeddfb1bec51,qop=auth"#,
            proof: "rspauth=4484aebbb2b9b89ed17c81345c8c06dd",
        },
        Captured {
            user: "jürgen",
            password: "secret",
            nonce: "gxx+W/rW6mEaAz5OFSbfryKYeOyiZIU09HDv1gLz",
            response: r#"charset=utf-8,username="jürgen",realm="zk-sasl-md5",nonce="gxx+W/rW6mEaAz5OFSbfryKYeOyiZIU09HDv1gLz",nc=00000001,cnonce="oXNWJShB85m2+7syJalEbg6cwzKyA8JeQbxIfzc/",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=7e6bf64d312660c6755c310b6eeca7aa,qop=auth"#,
            proof: "rspauth=c2d45b190588a983af6e638078b0e424",
        },
        // Encoded separately: the user in UTF-8, the password in ISO 8859-1.
        Captured {
            user: "иван",
            password: "päss",
            nonce: "imrhDJS/QfmLo+9wL1A1ZKynS5Ln+poc16csr64e",
            response: r#"charset=utf-8,username="иван",realm="zk-sasl-md5",nonce="imrhDJS/QfmLo+9wL1A1ZKynS5Ln+poc16csr64e",nc=00000001,cnonce="BOJXMqjkNpn7+sQS86EbErcSFIPbBnhl+hgybgcp",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=c5875449a3b8bf6cf97ed0d36aca3715,qop=auth"#,
            proof: "rspauth=322463ab060a7fe3b41a34d53be61f0b",
        },
        // The user that the client wants to act as is hashed and otherwise ignored.
        Captured {
            user: "bob",
            password: "secret",
            nonce: "DwiugAuyf+oY8CKqjc3/h2D5Co1uBfydOGCSUQD/",
            response: r#"charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="DwiugAuyf+oY8CKqjc3/h2D5Co1uBfydOGCSUQD/",nc=00000001,cnonce="OGHJ8QdJBeEeyL00YABgQkMbx367Bwdds4QwzxQy",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=560dc9a8ef69f7d0651c2ac3b0aa6732,qop=auth,authzid="ann""#,
            proof: "rspauth=33c0ab1f513bd6299549621584d6a95f",
        },
        Captured {
            user: r#"q"u\o"#,
            password: "a:b",
            nonce: "Mn2V1uHfviOwdTws1bPv8qKG28QiknWzFXwQEcK9",
            response: r#"charset=utf-8,username="q\"u\\o",realm="zk-sasl-md5",nonce="Mn2V1uHfviOwdTws1bPv8qKG28QiknWzFXwQEcK9",nc=00000001,cnonce="h5puPcb+hVphKTzzYZz7Q3cKcn69IxA1OQWFryyo",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=5c78e7c98cd2693553c07bb2f046221a,qop=auth"#,
            proof: "rspauth=2fdfb087315250b4644610c116c21005",
        },
        Captured {
            user: "bob",
            password: "secret",
            nonce: "BURpkR+BPdNtNt5J0GRP4eq5skJMxTgIp3fcGeXL",
            response: r#"qop=auth,realm="zk-sasl-md5",username="bob",nonce="BURpkR+BPdNtNt5J0GRP4eq5skJMxTgIp3fcGeXL",cnonce="2877122294600556",nc=00000001,digest-uri="zookeeper/zk-sasl-md5",response=7d0041ec54a748f691dba2dc1dc17ae2"#,
            proof: "rspauth=78402123cc90f9e74b0773200aa712e9",
        },
    ];

    #[test]
    fn captured_exchanges_succeed_with_the_same_proof() {
        for captured in CAPTURED {
            let Captured { user, password, .. } = captured;
            let users = |name: &str| (name == user).then_some(password);
            let mut exchange = Exchange::default();
            let nonce = || captured.nonce.to_owned();
            let challenge = exchange.step(b"", nonce, users);
            let text = format!(
                "realm=\"zk-sasl-md5\",nonce=\"{}\",charset=utf-8,algorithm=md5-sess",
                captured.nonce
            );
            assert_eq!(challenge, Ok(Step::Challenge(text.into_bytes())));
            let done = exchange.step(captured.response.as_bytes(), nonce, users);
            let expected = Step::Done {
                user: user.to_owned(),
                proof: captured.proof.as_bytes().to_vec(),
            };
            assert_eq!(done, Ok(expected), "{user}");
        }
    }

    #[test]
    fn wrong_password_and_unknown_user_are_refused() {
        let Captured {
            nonce, response, ..
        } = CAPTURED[0];
        let wrong = finish(nonce, |_| Some("Secret"), response.as_bytes());
        assert_eq!(wrong, Err(SaslError::Refused("wrong password")));
        let unknown = finish(nonce, |_| None, response.as_bytes());
        assert_eq!(unknown, Err(SaslError::Refused("unknown user")));
    }

    /// Changes the first captured response. A live 3.9.5 gave the same outcome for such changes to
    /// a response to its own challenge.
    #[test]
    fn changed_responses_fail_as_in_zookeeper() {
        use SaslError::{Refused, Unanswered};
        let Captured {
            nonce, response, ..
        } = CAPTURED[0];
        let judge = |response: &str| {
            finish(nonce, |_| Some("secret"), response.as_bytes()).map(|(_, user)| user)
        };
        for (from, to, outcome) in [
            ("charset=utf-8,", "", None),
            (
                "charset=utf-8",
                "charset=UTF-8",
                Some(Refused("charset other than utf-8")),
            ),
            ("username=\"bob\",", "", Some(Refused("no username"))),
            (
                "username=\"bob\"",
                "username=\"\"",
                Some(Unanswered("empty username")),
            ),
            (
                "realm=\"zk-sasl-md5\",",
                "",
                Some(Refused("realm other than the server's")),
            ),
            (
                "nonce=\"bU",
                "nonce=\"bV",
                Some(Refused("nonce other than the challenge's")),
            ),
            ("cnonce=", "c=", Some(Refused("no cnonce"))),
            ("nc=00000001", "nc=00000002", None),
            ("nc=00000001", "nonce-count=00000001", None),
            (
                "nc=00000001",
                "nonce-count=2",
                Some(Refused("nonce-count other than 1")),
            ),
            (
                "nc=00000001",
                "nonce-count=x",
                Some(Unanswered("nonce-count is not a number")),
            ),
            ("qop=auth", "", None),
            (
                "qop=auth",
                "qop=auth-int",
                Some(Refused("qop other than auth")),
            ),
            (
                "zookeeper/",
                "zookeeper1/",
                Some(Refused("digest-uri other than the server's")),
            ),
            // Hashed as the client spells it.
            ("zookeeper/", "ZooKeeper/", Some(Refused("wrong password"))),
            (
                "digest-uri=",
                "uri=",
                Some(Refused("digest-uri other than the server's")),
            ),
            ("maxbuf=65536,", "", None),
            ("maxbuf=65536", "maxbuf=-1", None),
            (
                "maxbuf=65536",
                "maxbuf=x",
                Some(Unanswered("maxbuf is not a number")),
            ),
            (
                "response=563b",
                "response=563B",
                Some(Refused("wrong password")),
            ),
            ("response=563b", "r=563b", Some(Refused("no response"))),
            (
                "qop=auth",
                "qop=auth,qop=auth",
                Some(Refused("duplicate directive")),
            ),
            ("qop=auth", "qop=auth,else=1,else=2", None),
            (
                "qop=auth",
                "qop=auth,authzid=\"bob\"",
                Some(Refused("wrong password")),
            ),
        ] {
            let changed = response.replacen(from, to, 1);
            assert_ne!(changed, response, "{from} is in the response");
            let expected = outcome.map_or_else(|| Ok("bob".to_owned()), Err);
            assert_eq!(judge(&changed), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn exchange_cannot_be_restarted_after_success_or_failure() {
        let Captured {
            nonce, response, ..
        } = CAPTURED[0];
        let mut exchange = Exchange::default();
        let mut step = |token: &[u8]| exchange.step(token, || nonce.into(), |_| Some("secret"));
        let long = vec![b' '; TOKEN_BYTES_MAX + 1];
        let too_long = Err(SaslError::Refused("token longer than 4096 bytes"));
        let over = Err(SaslError::Refused("token after the end of the exchange"));
        // The token that requests the challenge may be anything that is short enough.
        assert_eq!(step(&long), too_long);
        assert!(matches!(step(b"garbage"), Ok(Step::Challenge(_))));
        assert_eq!(step(&long), too_long);
        assert!(matches!(step(response.as_bytes()), Ok(Step::Done { .. })));
        assert_eq!(step(response.as_bytes()), over);
        assert_eq!(step(b""), over);
        assert_eq!(step(&long), too_long);

        let mut exchange = Exchange::Challenged(nonce.to_owned());
        let mut step = |token: &[u8]| exchange.step(token, || nonce.into(), |_| Some("secret"));
        assert_eq!(step(b""), Err(SaslError::Refused("no username")));
        assert_eq!(step(response.as_bytes()), over);
    }

    #[test]
    fn nonces_depend_on_seed_and_counter_and_are_reproducible() {
        let nonces = [nonce(b"a", 1), nonce(b"a", 2), nonce(b"b", 1)];
        assert_eq!(nonces[0], nonce(b"a", 1));
        for (i, nonce) in nonces.iter().enumerate() {
            assert_eq!(nonce.len(), 40);
            assert!(!nonce.contains(['"', '\\', '=']), "{nonce} needs no escape");
            assert!(!nonces[..i].contains(nonce));
        }
    }

    #[test]
    fn name_with_an_at_sign_must_have_the_form_of_a_kerberos_name() {
        for (name, is_malformed) in [
            ("bob", false),
            ("a/b/c", false),
            ("", false),
            ("bob@", false),
            ("bob@REALM", false),
            ("@", false),
            ("a/b@c", false),
            ("a/b/c@d", true),
            ("a@b@c", true),
            ("a@b/c", true),
        ] {
            assert_eq!(is_malformed_principal(name), is_malformed, "{name}");
        }
    }
}
