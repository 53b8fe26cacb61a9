//! Parses lines of a scenario.

use minikeeper_protocol::Xid;

use super::{
    env::Env,
    expect::Expectation,
    operation,
    token::{Token, tokens},
};

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) text: String,
    pub(crate) action: Action,
    pub(crate) expected: Option<Vec<Token>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Connect {
        conn: String,
        options: Vec<Token>,
        drops_first: bool,
    },
    Disconnect(String),
    Expire(String),
    Advance(u64),
    Mark(String),
    Request {
        conn: String,
        words: Vec<Token>,
    },
    Receive(String),
}

pub(super) fn parse_line(text: &str) -> Result<(Action, Option<Vec<Token>>), String> {
    let mut words = tokens(text)?;
    let arrow = words.iter().position(|word| word.is("->"));
    let mut expected = arrow.map(|at| {
        let expected = words.split_off(at + 1);
        words.pop();
        expected
    });
    if words.is_empty() {
        return Err("nothing before the arrow".to_owned());
    }
    let first = words.remove(0).text();
    let one = |words: &[Token]| match words {
        [word] => Ok(word.text()),
        _ => Err(format!("{first} takes one argument")),
    };
    let action = match first.as_str() {
        "connect" | "reconnect" if !words.is_empty() => {
            let conn = words.remove(0).text();
            let drops_first = first == "reconnect";
            if expected.is_none() {
                expected = Some(tokens("connected")?);
            }
            if drops_first {
                words.insert(0, Token::plain(&format!("session={conn}")));
            }
            operation::hello(&words, &Env::default(), true)?;
            Action::Connect {
                conn,
                options: words,
                drops_first,
            }
        }
        "disconnect" => Action::Disconnect(one(&words)?),
        "expire" => Action::Expire(one(&words)?),
        "mark" => Action::Mark(one(&words)?),
        "advance" => {
            let by = one(&words)?;
            let by_ms = by.strip_suffix("ms").and_then(|by| by.parse().ok());
            Action::Advance(by_ms.ok_or("a time looks like 4000ms")?)
        }
        _ if words.first().is_some_and(|word| word.is("<-")) => {
            words.remove(0);
            expected = Some(std::mem::take(&mut words));
            Action::Receive(first)
        }
        _ => {
            operation::message(&words, &Env::default(), Xid(0), true)?;
            Action::Request { conn: first, words }
        }
    };
    if let Some(expected) = &expected {
        Expectation::parse(expected, &Env::default(), true)?;
    }
    Ok((action, expected))
}

impl Line {
    /// Parses a line without a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (action, expected) = parse_line(text).map_err(|what| format!("{what}: {text}"))?;
        Ok(Self {
            number: 0,
            text: text.to_owned(),
            action,
            expected,
        })
    }
}
