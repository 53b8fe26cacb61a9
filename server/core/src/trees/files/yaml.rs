//! Reads and writes the part of YAML that trees use.

use std::fmt::Write as _;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

use crate::trees::files::TreeFileError;

/// The deepest nesting: a tree is an object of objects with lists.
const DEPTH_MAX: usize = 3;

/// Parses a text; data stays as it is written.
pub(super) fn parse(text: &str) -> Result<Value, TreeFileError> {
    let mut reader = YamlReader {
        parser: Parser::new_from_str(text),
    };
    let mut value = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => return Ok(value.unwrap_or_else(|| Map::new().into())),
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            _ if value.is_some() => return Err(wrong(&span, "a second document")),
            event => {
                let read = reader.value(event, &span, None, 0)?;
                // An empty document is an empty tree.
                value = Some(if read.is_null() {
                    Map::new().into()
                } else {
                    read
                });
            }
        }
    }
}

struct YamlReader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), TreeFileError> {
        match self.parser.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let marker = error.marker();
                Err(TreeFileError::Yaml {
                    line: marker.line(),
                    column: marker.col() + 1,
                    what: error.info().to_owned(),
                })
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// Reads the value that begins with this event. `field` is its name in a znode's object.
    fn value(
        &mut self,
        event: Event<'a>,
        span: &Span,
        field: Option<&str>,
        depth: usize,
    ) -> Result<Value, TreeFileError> {
        if depth > DEPTH_MAX {
            return Err(wrong(span, "nested too deeply for a tree"));
        }
        let tag = match &event {
            Event::Scalar(.., tag) => tag.as_ref(),
            Event::SequenceStart(_, tag) | Event::MappingStart(_, tag) => tag.as_ref(),
            _ => None,
        };
        if let Some(tag) = tag {
            let what = format!("tag {tag} is not supported; write bytes as data_base64");
            return Err(wrong(span, &what));
        }
        match event {
            Event::Scalar(text, style, ..) => Ok(scalar(&text, style, field)),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(items.into()),
                        (event, span) => items.push(self.value(event, &span, None, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut fields = Map::new();
                loop {
                    let (event, span) = self.next()?;
                    let name = match event {
                        Event::MappingEnd => return Ok(fields.into()),
                        Event::Scalar(name, _, _, None) => name.into_owned(),
                        _ => return Err(wrong(&span, "a name must be plain text")),
                    };
                    let (event, value_span) = self.next()?;
                    // Names have a meaning inside a znode; paths do not.
                    let field = (depth > 0).then_some(name.as_str());
                    let value = self.value(event, &value_span, field, depth + 1)?;
                    if fields.contains_key(&name) {
                        return Err(wrong(&span, &format!("duplicate {name:?}")));
                    }
                    fields.insert(name, value);
                }
            }
            Event::Alias(_) => Err(wrong(span, "aliases are not supported; repeat the value")),
            _ => Err(wrong(span, "not part of a tree")),
        }
    }
}

fn scalar(text: &str, style: ScalarStyle, field: Option<&str>) -> Value {
    if style == ScalarStyle::Plain {
        match (field, text) {
            (_, "" | "~" | "null" | "Null" | "NULL") => return Value::Null,
            (Some("container"), "true" | "True" | "TRUE") => return true.into(),
            (Some("container"), "false" | "False" | "FALSE") => return false.into(),
            (Some("ttl_ms"), number) => {
                if let Ok(number) = number.parse::<u64>() {
                    return number.into();
                }
            }
            _ => {}
        }
    }
    text.into()
}

fn wrong(span: &Span, what: &str) -> TreeFileError {
    TreeFileError::Yaml {
        line: span.start.line(),
        column: span.start.col() + 1,
        what: what.to_owned(),
    }
}

/// Formats a path and its znode as a line.
pub(super) fn line(path: &str, znode: &Value) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    let mut line = String::new();
    if path.starts_with('/') && path.chars().all(is_plain) {
        line.push_str(path);
    } else {
        put_text(&mut line, path);
    }
    line.push_str(": ");
    put(&mut line, znode);
    line.push('\n');
    line
}

/// Writes a value as JSON, which is also YAML once the characters that YAML cannot print are
/// escaped.
fn put(line: &mut String, value: &Value) {
    match value {
        Value::String(text) => put_text(line, text),
        Value::Array(items) => {
            line.push('[');
            for (index, item) in items.iter().enumerate() {
                line.push_str(if index == 0 { "" } else { ", " });
                put(line, item);
            }
            line.push(']');
        }
        Value::Object(fields) => {
            line.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                line.push_str(if index == 0 { "" } else { ", " });
                line.push_str(name);
                line.push_str(": ");
                put(line, value);
            }
            line.push('}');
        }
        other => line.push_str(&other.to_string()),
    }
}

fn put_text(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            '\r' => line.push_str("\\r"),
            // Line breaks in YAML 1.1, the byte order mark, and noncharacters.
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                // Writing to a string cannot fail.
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            }
            c if c.is_control() => {
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use crate::trees::Tree;

    #[track_caller]
    fn assert_wrong(text: &str, what: &str) {
        let error = Tree::from_yaml(text).unwrap_err().to_string();
        assert_eq!(error, what, "{text}");
    }

    #[test]
    fn invalid_tree_is_reported_with_its_position() {
        assert_wrong(
            "- a",
            "not an object that maps paths to znodes, such as {\"/a\": \"data\"}",
        );
        assert_wrong("/a: x\n/a: y", "line 2, column 1: duplicate \"/a\"");
        assert_wrong(
            "/a: &x y\n/b: *x",
            "line 2, column 5: aliases are not supported; repeat the value",
        );
        assert_wrong(
            "/a: !!binary aGk=",
            "line 1, column 5: tag tag:yaml.org,2002:!binary is not supported; write bytes as data_base64",
        );
        assert_wrong(
            "/a: {x: 1}",
            "path \"/a\": unknown field \"x\"; one of data, data_base64, acl, container, ttl_ms",
        );
        assert_wrong(
            "/a: {data: x, data_base64: aGk=}",
            "path \"/a\": data_base64 conflicts with another field",
        );
        assert_wrong("/a: {ttl_ms: -5}", "path \"/a\": ttl_ms cannot be \"-5\"");
        assert_wrong("/a: {acl: x}", "path \"/a\": acl cannot be \"x\"");
        assert_wrong(
            "/a: {acl: [[[[x]]]]}",
            "line 1, column 13: nested too deeply for a tree",
        );
        assert_wrong("/a: x\n---\n/b: y", "line 3, column 1: a second document");
        assert_wrong(
            "/a: [",
            "line 2, column 1: while parsing a node, did not find expected node content",
        );
    }

    #[test]
    fn empty_text_is_an_empty_tree() {
        for text in ["", "# nothing\n", "---\n", "{}", "null"] {
            assert_eq!(
                Tree::from_yaml(text).map(|tree| tree.len()),
                Ok(0),
                "{text}"
            );
        }
        assert_eq!(Tree::new().to_yaml(), "{}\n");
        assert_eq!(Tree::new().to_json(), "{}\n");
    }
}
