//! Elements of a page: balanced by construction, all text escaped. The markup is XML as well.

/// Text as it may stand in an element or in an attribute. Characters that XML does not allow become
/// U+FFFD.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(char),
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            char => escaped.push(char),
        }
    }
    escaped
}

/// An element around markup. Values of attributes are escaped here, the inner part is markup
/// already.
#[must_use]
pub fn element(name: &str, attributes: &[(&str, &str)], inner: &str) -> String {
    format!("<{}>{inner}</{name}>", opening(name, attributes))
}

/// An element around text.
#[must_use]
pub fn text_element(name: &str, attributes: &[(&str, &str)], text: &str) -> String {
    element(name, attributes, &escape(text))
}

/// An element with nothing in it.
#[must_use]
pub fn empty(name: &str, attributes: &[(&str, &str)]) -> String {
    format!("<{}/>", opening(name, attributes))
}

fn opening(name: &str, attributes: &[(&str, &str)]) -> String {
    let mut opening = name.to_owned();
    for (key, value) in attributes {
        opening.push_str(&format!(" {key}=\"{}\"", escape(value)));
    }
    opening
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        assert_eq!(
            text_element("p", &[("title", "\"a\" & 'b'")], "<i>\u{0}"),
            "<p title=\"&quot;a&quot; &amp; &#39;b&#39;\">&lt;i&gt;\u{fffd}</p>"
        );
    }
}
