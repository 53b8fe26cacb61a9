//! Splits a line into words: bare, or quoted with `\n \r \t \0 \" \' \\ \xff \u{1f600}`.

/// A word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    bytes: Vec<u8>,
    /// Whether the word starts with a quote, and so is neither a keyword nor null.
    pub(crate) is_quoted: bool,
}

impl Token {
    pub(crate) fn plain(text: &str) -> Self {
        Self {
            bytes: text.as_bytes().to_vec(),
            is_quoted: false,
        }
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        !self.is_quoted && self.bytes == word.as_bytes()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The bytes; `None` for the bare word `null`.
    pub(crate) fn value(&self) -> Option<Vec<u8>> {
        (!self.is("null")).then(|| self.bytes.clone())
    }

    /// The name and value of `name=value`.
    pub(crate) fn option(&self) -> Option<(String, Self)> {
        if self.is_quoted {
            return None;
        }
        let at = self.bytes.iter().position(|&byte| byte == b'=')?;
        let name = String::from_utf8(self.bytes[..at].to_vec()).ok()?;
        let value = Self {
            bytes: self.bytes[at + 1..].to_vec(),
            is_quoted: false,
        };
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            .then_some((name, value))
    }
}

/// Splits a line into words. A bare `#` begins a comment.
pub(crate) fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let mut token = Token {
            bytes: Vec::new(),
            is_quoted: rest.starts_with('"'),
        };
        while let Some(c) = rest.chars().next().filter(|c| !c.is_whitespace()) {
            rest = &rest[c.len_utf8()..];
            if c == '"' {
                rest = quoted(rest, &mut token.bytes)?;
            } else {
                token.bytes.extend(c.to_string().as_bytes());
            }
        }
        words.push(token);
        rest = rest.trim_start();
    }
    Ok(words)
}

fn quoted<'a>(mut rest: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    loop {
        let c = rest.chars().next().ok_or("missing closing quote")?;
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => return Ok(rest),
            '\\' => rest = escape(rest, bytes)?,
            _ => bytes.extend(c.to_string().as_bytes()),
        }
    }
}

fn escape<'a>(rest: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    let fault = || "unknown escape".to_owned();
    let c = rest.chars().next().ok_or_else(fault)?;
    let after = &rest[c.len_utf8()..];
    match c {
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        '0' => bytes.push(0),
        '"' | '\'' | '\\' => bytes.extend(c.to_string().as_bytes()),
        'x' => {
            let hex = after.get(..2).ok_or_else(fault)?;
            bytes.push(u8::from_str_radix(hex, 16).map_err(|_| fault())?);
            return Ok(&after[2..]);
        }
        'u' => {
            let (hex, after) = after
                .strip_prefix('{')
                .and_then(|after| after.split_once('}'))
                .ok_or_else(fault)?;
            let code = u32::from_str_radix(hex, 16).map_err(|_| fault())?;
            let c = char::from_u32(code).ok_or_else(fault)?;
            bytes.extend(c.to_string().as_bytes());
            return Ok(after);
        }
        _ => return Err(fault()),
    }
    Ok(after)
}
