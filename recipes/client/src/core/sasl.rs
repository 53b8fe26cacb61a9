//! SASL: the seam for mechanisms, and the mechanism DIGEST-MD5.
//!
//! Source: `docs/zookeeper-protocol.md` section 9.10, RFC 2831, and `ZooKeeperSaslClient` of
//! ZooKeeper's client.

use std::fmt;

use minikeeper_protocol::ErrorCode;

/// One side of a SASL exchange: how the client proves its identity on each connection.
///
/// After the handshake on a new connection, and before any other request, the client sends the token
/// of [`SaslMechanism::start`] and passes each reply to [`SaslMechanism::respond`], until that
/// returns [`SaslStep::Done`]. Only then does the client count as connected, and send its other
/// identities, its watches and the requests that wait. An error of either method ends the client,
/// except [`SaslError::NotReady`]: its session is lost with
/// [`LostReason::Sasl`](crate::LostReason::Sasl). A server that does not reply in time, or closes
/// the connection without a reply, is tried again later.
///
/// A mechanism is called under the client's lock: it must not block. For GSSAPI that means: get the
/// ticket beforehand, and let another task renew it. The first token is the one of
/// `gss_init_sec_context` for the service `zookeeper` at the server's name; after the last one the
/// server replies with an empty token.
///
/// # Examples
/// A mechanism with a single token, for a server that has it:
/// ```
/// use minikeeper_client::{SaslError, SaslMechanism, SaslStart, SaslStep};
///
/// struct Plain { user: String, password: String }
///
/// impl SaslMechanism for Plain {
///     fn name(&self) -> &str {
///         "PLAIN"
///     }
///
///     fn start(&mut self, _: SaslStart<'_>) -> Result<Vec<u8>, SaslError> {
///         Ok(format!("\0{}\0{}", self.user, self.password).into_bytes())
///     }
///
///     fn respond(&mut self, token: &[u8]) -> Result<SaslStep, SaslError> {
///         if token.is_empty() { Ok(SaslStep::Done) } else { Err(SaslError::Challenge("not empty")) }
///     }
/// }
/// ```
pub trait SaslMechanism: Send + 'static {
    /// Returns the name of the mechanism, for messages.
    fn name(&self) -> &str;

    /// Begins an exchange on a new connection; returns the first token, which is empty if the server
    /// begins. An exchange on an earlier connection has ended.
    ///
    /// # Errors
    /// The mechanism cannot begin.
    fn start(&mut self, at: SaslStart<'_>) -> Result<Vec<u8>, SaslError>;

    /// Handles the server's token; a missing one counts as empty.
    ///
    /// # Errors
    /// The fault of the token.
    fn respond(&mut self, token: &[u8]) -> Result<SaslStep, SaslError>;
}

/// What a mechanism may use for an exchange.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SaslStart<'a> {
    /// The server, as `host:port` of the connect string.
    pub server: &'a str,
    /// A number that differs for each exchange. It is [`Client::random`](crate::Client::random), so
    /// with a [seed](crate::ClientBuilder::seed) it is the same in each run; it is no secret.
    pub random: u128,
}

/// What a mechanism does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SaslStep {
    /// It sends this token.
    Reply(Vec<u8>),
    /// The exchange has succeeded: the server has accepted this client, and has proved itself if the
    /// mechanism demands that.
    Done,
}

/// Why a SASL exchange has failed.
///
/// # Examples
/// ```
/// use minikeeper_client::{ErrorCode, SaslError};
///
/// assert_eq!(
///     SaslError::Refused(ErrorCode::AuthFailed).to_string(),
///     "SASL: the server refused the user or the password: authentication failed (AUTHFAILED -115)"
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SaslError {
    /// The server refused the token, and so the user or the password.
    Refused(ErrorCode),
    /// The server has no SASL: it answered without a challenge. It needs a JAAS configuration with a
    /// section `Server`; or set no SASL in the client.
    NotOffered,
    /// The server's token cannot be answered.
    Challenge(&'static str),
    /// The server did not prove that it knows the password.
    NotProven,
    /// The mechanism cannot begin or continue now, for example because a ticket has expired. This does
    /// not end the client: it tries again on another connection.
    NotReady(&'static str),
}

impl fmt::Display for SaslError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => {
                write!(
                    f,
                    "SASL: the server refused the user or the password: {code}"
                )
            }
            Self::NotOffered => f.write_str(
                "SASL: the server does not offer it; it needs a JAAS section Server, or the client \
                 must not use SASL",
            ),
            Self::Challenge(fault) => write!(f, "SASL: unusable challenge of the server: {fault}"),
            Self::NotReady(why) => write!(f, "SASL: not ready: {why}"),
            Self::NotProven => f.write_str(
                "SASL: the server did not prove that it knows the password; a server with \
                 allowSaslFailedClients also answers so if the user or the password is wrong",
            ),
        }
    }
}

impl std::error::Error for SaslError {}

/// The mechanism of a client. It prints its name only: it knows secrets.
pub(crate) struct Sasl(pub(crate) Box<dyn SaslMechanism>);

impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

#[cfg(feature = "sasl")]
pub use self::digest_md5::DigestMd5;

#[cfg(feature = "sasl")]
mod digest_md5 {
    use md5::{Digest as _, Md5};
    use minikeeper_protocol::directives;

    use super::{SaslError, SaslMechanism, SaslStart, SaslStep};

    /// What servers of ZooKeeper hash, independent of their address.
    const DIGEST_URI: &str = "zookeeper/zk-sasl-md5";
    /// The realm if the challenge has none.
    const REALM_DEFAULT: &str = "zk-sasl-md5";
    /// A longer challenge is refused unread. Source: RFC 2831 section 2.1.1.
    const CHALLENGE_BYTES_MAX: usize = 2048;

    /// The mechanism DIGEST-MD5 with a user and a password, as in ZooKeeper's
    /// `DigestLoginModule`. Needs the feature `sasl`.
    ///
    /// It uses the quality of protection `auth`, encodes names in UTF-8, and demands the server's
    /// proof that it knows the password. The password itself is not sent; but DIGEST-MD5 is weak
    /// against who records the exchange and guesses passwords, so use it within TLS.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use minikeeper_client::{Client, DigestMd5};
    ///
    /// # let server = minikeeper::Server::builder()
    /// #     .configure(|config| config.sasl_users = vec![("bob".into(), "secret".into())])
    /// #     .start()
    /// #     .await?;
    /// # let address = server.connect_string();
    /// let client = Client::builder(&address)?.sasl(DigestMd5::new("bob", "secret")).connect().await?;
    /// let who = client.who_am_i().await?;
    /// assert!(who.iter().any(|it| it.scheme == "sasl" && it.user == "bob"));
    /// # Ok(()) }
    /// ```
    pub struct DigestMd5 {
        user: String,
        password: String,
        random: u128,
        awaits: Awaits,
    }

    enum Awaits {
        Challenge,
        /// This proof.
        Proof(String),
    }

    impl std::fmt::Debug for DigestMd5 {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("DigestMd5")
                .field("user", &self.user)
                .finish_non_exhaustive()
        }
    }

    impl DigestMd5 {
        /// Creates the mechanism for this user.
        #[must_use]
        pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
            Self {
                user: user.into(),
                password: password.into(),
                random: 0,
                awaits: Awaits::Challenge,
            }
        }

        /// Returns the response to a challenge, and the proof that the server must send for it.
        fn answer(&self, challenge: &Challenge, cnonce: &str) -> (Vec<u8>, String) {
            let Challenge {
                realm,
                nonce,
                is_utf8,
            } = challenge;
            let user_hash = Md5::new()
                .chain_update(latin1_or_utf8(&self.user))
                .chain_update(b":")
                .chain_update(realm)
                .chain_update(b":")
                .chain_update(latin1_or_utf8(&self.password))
                .finalize();
            let a1 = hex(&[&user_hash[..], b":", nonce, b":", cnonce.as_bytes()].concat());
            let value = |method: &str| {
                let a2 = hex(format!("{method}:{DIGEST_URI}").as_bytes());
                let middle = format!(":00000001:{cnonce}:auth:{a2}");
                hex(&[a1.as_bytes(), b":", nonce, middle.as_bytes()].concat())
            };
            let (charset, user) = if *is_utf8 {
                ("charset=utf-8,", self.user.as_bytes().to_vec())
            } else {
                ("", latin1_or_utf8(&self.user))
            };
            let rest = format!(
                "\",nc=00000001,cnonce=\"{cnonce}\",digest-uri=\"{DIGEST_URI}\",maxbuf=65536,\
                 response={},qop=auth",
                value("AUTHENTICATE"),
            );
            let response = [
                charset.as_bytes(),
                b"username=\"",
                &escaped(&user),
                b"\",realm=\"",
                &escaped(realm),
                b"\",nonce=\"",
                &escaped(nonce),
                rest.as_bytes(),
            ];
            (response.concat(), format!("rspauth={}", value("")))
        }
    }

    impl SaslMechanism for DigestMd5 {
        fn name(&self) -> &str {
            "DIGEST-MD5"
        }

        fn start(&mut self, at: SaslStart<'_>) -> Result<Vec<u8>, SaslError> {
            self.random = at.random;
            self.awaits = Awaits::Challenge;
            Ok(Vec::new())
        }

        fn respond(&mut self, token: &[u8]) -> Result<SaslStep, SaslError> {
            match std::mem::replace(&mut self.awaits, Awaits::Challenge) {
                Awaits::Challenge => {
                    if token.is_empty() {
                        return Err(SaslError::NotOffered);
                    }
                    let challenge = Challenge::parse(token).map_err(SaslError::Challenge)?;
                    // Random numbers of the client can be predicted, and the password cannot.
                    let secret = format!("{}:{:x}", self.password, self.random);
                    let (response, proof) = self.answer(&challenge, &hex(secret.as_bytes()));
                    self.awaits = Awaits::Proof(proof);
                    Ok(SaslStep::Reply(response))
                }
                Awaits::Proof(proof) if token == proof.as_bytes() => Ok(SaslStep::Done),
                Awaits::Proof(_) => Err(SaslError::NotProven),
            }
        }
    }

    struct Challenge {
        realm: Vec<u8>,
        nonce: Vec<u8>,
        is_utf8: bool,
    }

    impl Challenge {
        fn parse(token: &[u8]) -> Result<Self, &'static str> {
            if token.len() > CHALLENGE_BYTES_MAX {
                return Err("longer than 2048 bytes");
            }
            let (mut realm, mut nonce, mut qop) = (None, None, None);
            let (mut algorithm, mut charset) = (None, None);
            for directive in directives::parse(token) {
                let (key, value) = directive?;
                let slot = match key.to_ascii_lowercase().as_slice() {
                    b"realm" => {
                        // A server may offer several; the first counts.
                        realm.get_or_insert(value);
                        continue;
                    }
                    b"nonce" => &mut nonce,
                    b"qop" => &mut qop,
                    b"algorithm" => &mut algorithm,
                    b"charset" => &mut charset,
                    _ => continue,
                };
                if slot.replace(value).is_some() {
                    return Err("duplicate directive");
                }
            }
            let is =
                |value: &[u8], text: &str| value.trim_ascii().eq_ignore_ascii_case(text.as_bytes());
            if !algorithm.is_some_and(|name| is(&name, "md5-sess")) {
                return Err("algorithm other than md5-sess");
            }
            let has_auth =
                |list: &Vec<u8>| list.split(|byte| *byte == b',').any(|it| is(it, "auth"));
            if !qop.as_ref().is_none_or(has_auth) {
                return Err("no qop auth");
            }
            let is_utf8 = charset.is_some();
            if charset.is_some_and(|name| !is(&name, "utf-8")) {
                return Err("charset other than utf-8");
            }
            Ok(Self {
                realm: realm.unwrap_or_else(|| REALM_DEFAULT.into()),
                nonce: nonce.ok_or("no nonce")?,
                is_utf8,
            })
        }
    }

    /// Encodes a text for hashing: in ISO 8859-1 if possible, else in UTF-8.
    fn latin1_or_utf8(text: &str) -> Vec<u8> {
        let latin1 = text.chars().map(|c| u8::try_from(c).ok());
        latin1
            .collect::<Option<_>>()
            .unwrap_or_else(|| text.as_bytes().to_vec())
    }

    /// Escapes what ends or escapes a quoted value.
    fn escaped(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        for &byte in text {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out
    }

    fn hex(bytes: &[u8]) -> String {
        let digest = Md5::digest(bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[cfg(test)]
    mod tests {
        use minikeeper_protocol::directives;

        use super::*;
        use crate::core::backoff::Chance;

        /// Captured between OpenJDK 17's client and ZooKeeper's server: user, password, the client's
        /// response, the server's proof. User and password are hashed separately, in ISO 8859-1 if
        /// they can be.
        const CAPTURED: [(&str, &str, &str, &str); 6] = [
            (
                "bob",
                "secret",
                r#"charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="bUdViOiy1dHno+A4z1PR8iokigjW3A5Yj66Vs7SA",nc=00000001,cnonce="isckRBFE/3s0N5ZpcVo3OrRtcCtzk6EfMxOvs3kw",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=563b0f34a5ec61cafbf388bfa0af7fb8,qop=auth"#,
                "rspauth=57de229b271d55eb00dcfa47fb5f3405",
            ),
            (
                "ann",
                "pässwörd",
                r#"charset=utf-8,username="ann",realm="zk-sasl-md5",nonce="e11xfHYNEkqWvOzwMIjU0TCfcnx6g20Lk7gHCncV",nc=00000001,cnonce="GQQ09HQdAGxg/W45P+QlhNcfnNHWV4ld5lFLEE8T",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=60d1c4040a8e8f397c89f6e808bd01c9,qop=auth"#,
                "rspauth=fca63afb89f5e5be5bafaeb98ed63e18",
            ),
            (
                "eve",
                "пароль",
                r#"charset=utf-8,username="eve",realm="zk-sasl-md5",nonce="G+b0YAR9iH5qnAsF70KCO7NVQOtf9VUjBCZHjMoT",nc=00000001,cnonce="UHUb880aJcd3dQ+th11OV1tVIN01DkqhuPeojmYQ",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=4d88ed985e1c6365fb57aeddfb1bec51,qop=auth"#,
                "rspauth=4484aebbb2b9b89ed17c81345c8c06dd",
            ),
            (
                "jürgen",
                "secret",
                r#"charset=utf-8,username="jürgen",realm="zk-sasl-md5",nonce="gxx+W/rW6mEaAz5OFSbfryKYeOyiZIU09HDv1gLz",nc=00000001,cnonce="oXNWJShB85m2+7syJalEbg6cwzKyA8JeQbxIfzc/",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=7e6bf64d312660c6755c310b6eeca7aa,qop=auth"#,
                "rspauth=c2d45b190588a983af6e638078b0e424",
            ),
            (
                "иван",
                "päss",
                r#"charset=utf-8,username="иван",realm="zk-sasl-md5",nonce="imrhDJS/QfmLo+9wL1A1ZKynS5Ln+poc16csr64e",nc=00000001,cnonce="BOJXMqjkNpn7+sQS86EbErcSFIPbBnhl+hgybgcp",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=c5875449a3b8bf6cf97ed0d36aca3715,qop=auth"#,
                "rspauth=322463ab060a7fe3b41a34d53be61f0b",
            ),
            (
                r#"q"u\o"#,
                "a:b",
                r#"charset=utf-8,username="q\"u\\o",realm="zk-sasl-md5",nonce="Mn2V1uHfviOwdTws1bPv8qKG28QiknWzFXwQEcK9",nc=00000001,cnonce="h5puPcb+hVphKTzzYZz7Q3cKcn69IxA1OQWFryyo",digest-uri="zookeeper/zk-sasl-md5",maxbuf=65536,response=5c78e7c98cd2693553c07bb2f046221a,qop=auth"#,
                "rspauth=2fdfb087315250b4644610c116c21005",
            ),
        ];

        fn value(list: &str, key: &str) -> String {
            let mut list = directives::parse(list.as_bytes()).map(Result::unwrap);
            let (_, value) = list.find(|(it, _)| *it == key.as_bytes()).unwrap();
            String::from_utf8(value).unwrap()
        }

        fn challenge(nonce: &str) -> String {
            format!("realm=\"zk-sasl-md5\",nonce=\"{nonce}\",charset=utf-8,algorithm=md5-sess")
        }

        #[test]
        fn responses_are_those_of_java() {
            for (user, password, response, proof) in CAPTURED {
                let mechanism = DigestMd5::new(user, password);
                let challenge = challenge(&value(response, "nonce"));
                let challenge = Challenge::parse(challenge.as_bytes()).unwrap();
                let answer = mechanism.answer(&challenge, &value(response, "cnonce"));
                assert_eq!(
                    answer,
                    (response.as_bytes().to_vec(), proof.to_owned()),
                    "{user}"
                );
            }
        }

        fn start(random: u128) -> SaslStart<'static> {
            SaslStart {
                server: "zk1:2181",
                random,
            }
        }

        #[test]
        fn server_without_the_password_is_not_trusted() {
            let respond = |proof: &[u8]| {
                let mut mechanism = DigestMd5::new("bob", "secret");
                assert_eq!(mechanism.start(start(1)), Ok(Vec::new()));
                assert!(matches!(
                    mechanism.respond(challenge("n").as_bytes()),
                    Ok(SaslStep::Reply(_))
                ));
                mechanism.respond(proof)
            };
            // A server with allowSaslFailedClients answers a wrong password with an empty token.
            for wrong in [
                &b""[..],
                b"rspauth=",
                b"rspauth=00000000000000000000000000000000",
            ] {
                assert_eq!(respond(wrong), Err(SaslError::NotProven));
            }
        }

        #[test]
        fn each_exchange_has_its_own_client_nonce() {
            let mut mechanism = DigestMd5::new("bob", "secret");
            let mut cnonce = |random| {
                mechanism.start(start(random)).unwrap();
                let Ok(SaslStep::Reply(response)) = mechanism.respond(challenge("n").as_bytes())
                else {
                    panic!("a response is expected");
                };
                value(std::str::from_utf8(&response).unwrap(), "cnonce")
            };
            let first = cnonce(1);
            assert_ne!(first, cnonce(2));
            assert_eq!(first, cnonce(1));
        }

        #[test]
        fn arbitrary_tokens_end_or_continue_the_exchange_without_a_panic() {
            let mut chance = Chance::new(1);
            let mut below = |bound: usize| usize::try_from(chance.below(bound as u64)).unwrap();
            for _ in 0..20_000 {
                let mut token = challenge("n").into_bytes();
                for _ in 0..=below(8) {
                    let at = below(token.len() + 1);
                    let byte = b"\",=\\ \t\0\xffanr"[below(11)];
                    match below(3) {
                        0 => token.insert(at, byte),
                        1 => token.truncate(at),
                        _ => token.splice(at..at, [b'a', b'=', byte]).for_each(drop),
                    }
                }
                let mut mechanism = DigestMd5::new("bob", "secret");
                if let Ok(SaslStep::Reply(response)) = mechanism.respond(&token) {
                    assert!(directives::parse(&response).all(|it| it.is_ok()));
                    assert_eq!(mechanism.respond(&token), Err(SaslError::NotProven));
                }
            }
        }

        #[test]
        fn unusable_challenges_are_refused_with_their_fault() {
            let judge = |token: &str| DigestMd5::new("bob", "secret").respond(token.as_bytes());
            assert_eq!(judge(""), Err(SaslError::NotOffered));
            let long = format!(
                "{},x=\"{}\"",
                challenge("n"),
                "y".repeat(CHALLENGE_BYTES_MAX)
            );
            for (token, fault) in [
                ("realm=\"r\",algorithm=md5-sess", "no nonce"),
                ("nonce=n", "algorithm other than md5-sess"),
                ("nonce=n,algorithm=md5", "algorithm other than md5-sess"),
                ("nonce=n,nonce=m,algorithm=md5-sess", "duplicate directive"),
                (
                    "nonce=n,algorithm=md5-sess,qop=\"auth-int,auth-conf\"",
                    "no qop auth",
                ),
                (
                    "nonce=n,algorithm=md5-sess,charset=latin1",
                    "charset other than utf-8",
                ),
                ("nonce=\"n", "a quoted value without its closing quote"),
                (&long, "longer than 2048 bytes"),
            ] {
                assert_eq!(
                    judge(token),
                    Err(SaslError::Challenge(fault)),
                    "{token:.80}"
                );
            }
            let both = "nonce=n,algorithm=MD5-sess,qop=\"auth-int, auth\"";
            assert!(matches!(judge(both), Ok(SaslStep::Reply(_))));
        }
    }
}
