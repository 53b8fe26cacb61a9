//! The part of a URL behind the question mark.

use crate::control::fault::Fault;

/// Names and values of a query, decoded.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, Fault> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name, true)?, decoded(value, true)?))
        })
        .collect()
}

/// A text with its percent signs followed; in queries a plus stands for a space.
pub(crate) fn decoded(text: &str, plus_is_space: bool) -> Result<String, Fault> {
    let wrong = || Fault::bad_input(format!("{text:?} is no UTF-8 with percent signs"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match byte {
            b'%' => {
                let [high, low, behind @ ..] = rest else {
                    return Err(wrong());
                };
                bytes.push(digit(*high).ok_or_else(wrong)? << 4 | digit(*low).ok_or_else(wrong)?);
                rest = behind;
            }
            b'+' if plus_is_space => bytes.push(b' '),
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let pairs = pairs("path=%2Fa+b%C3%A4&&x&y=1=2").unwrap();
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("path", "/a bä"), ("x", ""), ("y", "1=2")]);
    }

    #[test]
    fn what_cannot_be_decoded_is_refused() {
        for text in ["a=%", "a=%4", "a=%zz", "a=%ff", "%C3=b"] {
            assert!(pairs(text).is_err(), "{text}");
        }
        assert_eq!(decoded("a+b", false).unwrap(), "a+b");
    }
}
