//! Reads users and passwords from a JAAS login configuration, as ZooKeeper does:
//!
//! ```text
//! Server {
//!     org.apache.zookeeper.server.auth.DigestLoginModule required
//!     user_bob="secret"
//!     user_ann="hidden";
//! };
//! ```
//!
//! Source: the documentation of `javax.security.auth.login.Configuration`, and OpenJDK; the cases of
//! the tests were checked with OpenJDK 17. It tolerates three faults that are errors here: an unclosed
//! quote, an unclosed comment, and a section without a login module.

use std::{error::Error, fmt, iter::Peekable, str::Chars};

/// A fault in a JAAS login configuration. Never quotes a value: that may be a password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JaasError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: String,
}

impl fmt::Display for JaasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, fault } = self;
        write!(f, "line {line}: {fault}")
    }
}

impl Error for JaasError {}

/// Reads the users and passwords of one section: `Server` in ZooKeeper's default settings. Returns
/// `None` if there is no such section: then ZooKeeper does not serve SASL.
///
/// Other sections, such as those of clients, are skipped, but must be well-formed.
///
/// # Errors
/// The first fault in the whole text, or a login module in that section that is not supported, such as
/// Kerberos (GSSAPI).
///
/// # Examples
/// ```
/// let text = r#"Server {
///     org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="secret";
/// };"#;
/// let users = minikeeper::jaas_users(text, "Server")?.expect("there is a section");
/// assert_eq!(users, [("bob".to_owned(), "secret".to_owned())]);
/// # Ok::<(), minikeeper::JaasError>(())
/// ```
pub fn jaas_users(text: &str, section: &str) -> Result<Option<Vec<(String, String)>>, JaasError> {
    let mut parser = Parser::new(text)?;
    let (mut seen, mut users) = (Vec::new(), None);
    while parser.token != JaasToken::End {
        let line = parser.line;
        let name = parser.word("the name of a section")?;
        if seen.contains(&name) {
            return Err(fault(line, format!("duplicate section \"{name}\"")));
        }
        let modules = parser.section()?;
        if name == section {
            users = Some(users_of(&modules, &name, line)?);
        }
        seen.push(name);
    }
    Ok(users)
}

/// One login module of a section.
struct Module {
    line: usize,
    class: String,
    options: Vec<(String, String)>,
}

fn users_of(
    modules: &[Module],
    section: &str,
    line: usize,
) -> Result<Vec<(String, String)>, JaasError> {
    if modules.is_empty() {
        return Err(fault(
            line,
            format!("no login module in section \"{section}\""),
        ));
    }
    let mut users: Vec<(String, String)> = Vec::new();
    for module in modules {
        let class = &module.class;
        if class.ends_with("Krb5LoginModule") {
            let text =
                "GSSAPI is not supported; use DigestLoginModule with user_<name>=\"<password>\"";
            return Err(fault(module.line, format!("login module {class}: {text}")));
        }
        if class != DIGEST_MODULE {
            let text = format!("unknown; only {DIGEST_MODULE} is supported");
            return Err(fault(module.line, format!("login module {class}: {text}")));
        }
        for (key, password) in &module.options {
            // ZooKeeper ignores other options, such as `debug`.
            let Some(name) = key.strip_prefix("user_") else {
                continue;
            };
            match users.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.clone_from(password),
                None => users.push((name.to_owned(), password.clone())),
            }
        }
    }
    Ok(users)
}

const DIGEST_MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule";

fn fault(line: usize, fault: impl Into<String>) -> JaasError {
    JaasError {
        line,
        fault: fault.into(),
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum JaasToken {
    /// A word, in quotes or not.
    Word(String),
    /// Begins with a digit; not allowed anywhere without quotes.
    Number,
    Sign(char),
    End,
}

/// A parser with one token of lookahead.
struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    token: JaasToken,
    /// The line of the token.
    line: usize,
    /// The line of the text after the token.
    next_line: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self, JaasError> {
        let mut parser = Self {
            rest: text.chars().peekable(),
            token: JaasToken::End,
            line: 1,
            next_line: 1,
        };
        parser.advance()?;
        Ok(parser)
    }

    /// Parses the part in braces, and the semicolon after it.
    fn section(&mut self) -> Result<Vec<Module>, JaasError> {
        self.sign('{')?;
        let mut modules = Vec::new();
        while self.token != JaasToken::Sign('}') {
            modules.push(self.module()?);
        }
        self.sign('}')?;
        self.sign(';')?;
        Ok(modules)
    }

    fn module(&mut self) -> Result<Module, JaasError> {
        let line = self.line;
        let class = self.word("the class of a login module, or '}'")?;
        let flag_line = self.line;
        let flag = self.word("required, requisite, sufficient or optional")?;
        let flags = ["required", "requisite", "sufficient", "optional"];
        if !flags.iter().any(|known| flag.eq_ignore_ascii_case(known)) {
            let text =
                format!("expected required, requisite, sufficient or optional after {class}");
            return Err(fault(flag_line, text));
        }
        let mut options = Vec::new();
        while self.token != JaasToken::Sign(';') {
            let key = self.word("an option, or ';'")?;
            self.sign('=')?;
            let value_line = self.line;
            let value = self.word("a value; put it in quotes")?;
            if refers_to_property(&value) {
                let text = "value with ${...}: system properties are not supported";
                return Err(fault(value_line, text));
            }
            options.push((key, value));
        }
        self.sign(';')?;
        Ok(Module {
            line,
            class,
            options,
        })
    }

    fn word(&mut self, expected: &str) -> Result<String, JaasError> {
        if !matches!(self.token, JaasToken::Word(_)) {
            return Err(self.unexpected(expected));
        }
        match self.advance()? {
            JaasToken::Word(word) => Ok(word),
            _ => unreachable!("the token was checked to be a word"),
        }
    }

    fn sign(&mut self, sign: char) -> Result<(), JaasError> {
        if self.token != JaasToken::Sign(sign) {
            return Err(self.unexpected(&format!("'{sign}'")));
        }
        self.advance().map(drop)
    }

    fn unexpected(&self, expected: &str) -> JaasError {
        let found = match self.token {
            JaasToken::Word(_) => "a word".to_owned(),
            JaasToken::Number => "a number without quotes".to_owned(),
            JaasToken::Sign(sign) => format!("{sign:?}"),
            JaasToken::End => "the end".to_owned(),
        };
        fault(self.line, format!("expected {expected}, found {found}"))
    }

    /// Advances to the next token and returns the previous one.
    fn advance(&mut self) -> Result<JaasToken, JaasError> {
        self.skip_space_and_comments()?;
        self.line = self.next_line;
        let token = match self.rest.next() {
            None => JaasToken::End,
            Some('"') => JaasToken::Word(self.quoted()?),
            Some(c) if is_numeric(c) => {
                while self.rest.next_if(|&c| is_numeric(c)).is_some() {}
                JaasToken::Number
            }
            Some(c) if is_word(c) => {
                let mut word = String::from(c);
                while let Some(c) = self.rest.next_if(|&c| is_word(c) || is_numeric(c)) {
                    word.push(c);
                }
                JaasToken::Word(word)
            }
            Some(c) => JaasToken::Sign(c),
        };
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn skip_space_and_comments(&mut self) -> Result<(), JaasError> {
        while let Some(&c) = self.rest.peek() {
            match c {
                '\n' => self.next_line += 1,
                _ if c <= ' ' => {}
                // One slash is enough: a line comment begins there, as with two.
                '/' => {
                    let line = self.next_line;
                    self.rest.next();
                    if self.rest.next_if_eq(&'*').is_some() {
                        self.skip_block_comment(line)?;
                    } else {
                        while self.rest.next_if(|&c| c != '\n').is_some() {}
                    }
                    continue;
                }
                _ => break,
            }
            self.rest.next();
        }
        Ok(())
    }

    fn skip_block_comment(&mut self, start: usize) -> Result<(), JaasError> {
        while let Some(c) = self.rest.next() {
            match c {
                '*' if self.rest.next_if_eq(&'/').is_some() => return Ok(()),
                '\n' => self.next_line += 1,
                _ => {}
            }
        }
        Err(fault(start, "unclosed comment"))
    }

    /// Reads a quoted text whose opening quote has been read.
    fn quoted(&mut self) -> Result<String, JaasError> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('"') => return Ok(text),
                Some('\\') => match self.escaped() {
                    Some(c) => text.push(c),
                    None => return Err(self.unclosed()),
                },
                None | Some('\n' | '\r') => return Err(self.unclosed()),
                Some(c) => text.push(c),
            }
        }
    }

    fn unclosed(&self) -> JaasError {
        fault(self.next_line, "quote not closed on the same line")
    }

    /// Reads an escape whose backslash has been read. Returns its character.
    fn escaped(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        Some(match c {
            '0'..='7' => {
                // One to three octal digits, at most 377.
                let digits_max = if c <= '3' { 2 } else { 1 };
                let mut code = c.to_digit(8)?;
                for _ in 0..digits_max {
                    let Some(digit) = self.rest.next_if(|c| c.is_digit(8)) else {
                        break;
                    };
                    code = code * 8 + digit.to_digit(8)?;
                }
                char::from_u32(code)?
            }
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\n' | '\r' => return None,
            _ => c,
        })
    }
}

/// Returns whether a character may start a number or continue a word.
const fn is_numeric(c: char) -> bool {
    matches!(c, '0'..='9' | '.' | '-')
}

const fn is_word(c: char) -> bool {
    matches!(c, 'a'..='z' | 'A'..='Z' | '$' | '_' | '*') || c >= '\u{a0}'
}

/// Returns whether a value contains `${NAME}`. `${{...}}` and an unclosed `${` are literal text.
fn refers_to_property(value: &str) -> bool {
    value
        .split_once("${")
        .is_some_and(|(_, rest)| !rest.starts_with('{') && rest.contains('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> Result<Option<Vec<(String, String)>>, String> {
        jaas_users(text, "Server").map_err(|error| error.to_string())
    }

    /// Returns a section with these options.
    fn server(options: &str) -> String {
        format!("Server {{ {DIGEST_MODULE} required {options}; }};")
    }

    #[test]
    fn users_and_passwords_are_read() {
        for (options, expected) in [
            ("", &[][..]),
            ("user_bob=\"secret\"", &[("bob", "secret")]),
            ("user_bob=secret.1-x", &[("bob", "secret.1-x")]),
            ("user_a=\"1\"\n  user_b=\"2\"", &[("a", "1"), ("b", "2")]),
            ("user_a=\"1\" user_a=\"2\"", &[("a", "2")]),
            ("user_a=\"\"", &[("a", "")]),
            ("\"user_a@b/c\" = \"x y\"", &[("a@b/c", "x y")]),
            (
                "user_a=\"q\\\"b\\\\t\\t\\101\\7\\477\"",
                &[("a", "q\"b\\t\tA\u{7}'7")],
            ),
            ("user_a=\"пароль\"", &[("a", "пароль")]),
            ("user_müller=x", &[("müller", "x")]),
            ("user_a=\"${{x}}${\"", &[("a", "${{x}}${")]),
            ("debug=true username=\"c\" user_a=b", &[("a", "b")]),
            (
                "// one\n user_a=\"//\" /* two\n */ / three\n",
                &[("a", "//")],
            ),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|&(user, password)| (user.to_owned(), password.to_owned()))
                .collect();
            assert_eq!(users(&server(options)), Ok(Some(expected)), "{options}");
        }
    }

    #[test]
    fn only_the_requested_section_counts() {
        let client = "Client { com.sun.security.auth.module.Krb5LoginModule REQUIRED\n\
                      useTicketCache=true; };\n";
        let both = format!("{client}{}QuorumServer {{ }};", server("user_a=b"));
        let expected = vec![("a".to_owned(), "b".to_owned())];
        assert_eq!(users(&both), Ok(Some(expected)));
        assert_eq!(users(client), Ok(None));
        assert_eq!(users(" // nothing\n"), Ok(None));
        assert_eq!(jaas_users(&both, "QuorumServer").unwrap_err().line, 3);
    }

    #[test]
    fn faults_are_reported_with_their_lines() {
        let krb5 = "Server {\n  com.sun.security.auth.module.Krb5LoginModule required\n  \
                    useKeyTab=true;\n};";
        for (text, error) in [
            (
                krb5,
                "line 2: login module com.sun.security.auth.module.Krb5LoginModule: GSSAPI is not \
                 supported; use DigestLoginModule with user_<name>=\"<password>\"",
            ),
            (
                "Server { a.B required; };",
                "line 1: login module a.B: unknown; only \
                 org.apache.zookeeper.server.auth.DigestLoginModule is supported",
            ),
            (
                "Server { };",
                "line 1: no login module in section \"Server\"",
            ),
            ("Server", "line 1: expected '{', found the end"),
            ("\n{", "line 2: expected the name of a section, found '{'"),
            (
                "Server { a required;\n",
                "line 2: expected the class of a login module, or '}', found the end",
            ),
            (
                "Server { a required; }",
                "line 1: expected ';', found the end",
            ),
            (
                "Server { a\nneeded; };",
                "line 2: expected required, requisite, sufficient or optional after a",
            ),
            (
                "Server { a required\n\nb; };",
                "line 3: expected '=', found ';'",
            ),
            (
                "Server { a required b=1; };",
                "line 1: expected a value; put it in quotes, found a number without quotes",
            ),
            (
                "Server { a required b='c'; };",
                "line 1: expected a value; put it in quotes, found '\\''",
            ),
            (
                "Server { a required b=\"c\n\"; };",
                "line 1: quote not closed on the same line",
            ),
            ("\n/* \n", "line 2: unclosed comment"),
            (
                "A { a required; };\nA { a required; };",
                "line 2: duplicate section \"A\"",
            ),
            (
                "Server { a required b=\"${user.home}\"; };",
                "line 1: value with ${...}: system properties are not supported",
            ),
        ] {
            assert_eq!(users(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn faults_do_not_reveal_passwords() {
        for options in [
            "user_a=hush hush",
            "user_a hush",
            "user_a=\"hush",
            "a=hush ${hush}",
        ] {
            let error = users(&server(options)).unwrap_err();
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
