//! The template of an instance's address.

use std::{fmt, str::FromStr};

use super::instance::ServiceInstance;

/// The template of a URI, in which fields in braces stand for values of an instance. Curator's class
/// of the same name.
///
/// The fields are `scheme` (`https` if the instance has a port for TLS, else `http`), `name`, `id`,
/// `address`, `port`, `ssl-port`, `registration-time-utc` and `service-type`; `{[}` and `{]}` are
/// braces. Other fields are variables of [`UriSpec::build_with`].
///
/// # Examples
/// ```
/// use minikeeper_recipes::{ServiceInstance, UriSpec};
///
/// let spec: UriSpec = "{scheme}://{address}:{port}/{tenant}".parse()?;
/// let instance: ServiceInstance = ServiceInstance::new("print").address("10.0.0.7").port(8080);
/// let uri = spec.build_with(&instance, &[("tenant", "a")]);
/// assert_eq!(uri, "http://10.0.0.7:8080/a");
/// # Ok::<(), minikeeper_recipes::UriSpecError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct UriSpec {
    /// The parts, in order.
    pub parts: Vec<UriPart>,
}

/// A part of a [`UriSpec`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UriPart {
    /// Text that stands for itself.
    Literal(String),
    /// The name of a field, without its braces.
    Variable(String),
}

/// The reason why a text is no [`UriSpec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UriSpecError {
    /// An opening brace inside a field. Close the field first, or write `{[}` for a brace.
    #[error("brace {{ at byte {at} is inside a field; close the field first, or write {{[}}")]
    Nested {
        /// Where the brace is.
        at: usize,
    },
    /// A closing brace outside a field. Write `{]}` for a brace.
    #[error("brace }} at byte {at} closes no field; write {{]}} for a brace")]
    Unopened {
        /// Where the brace is.
        at: usize,
    },
    /// The last field is not closed. Add a closing brace.
    #[error("the field at byte {at} is not closed; add a brace }}")]
    Unclosed {
        /// Where the field begins.
        at: usize,
    },
}

impl UriSpec {
    /// Returns the URI of an instance. Unknown fields are left out.
    #[must_use]
    pub fn build<P>(&self, instance: &ServiceInstance<P>) -> String {
        self.build_with(instance, &[])
    }

    /// Returns the URI of an instance with further variables, which take precedence over the
    /// instance's fields.
    #[must_use]
    pub fn build_with<P>(
        &self,
        instance: &ServiceInstance<P>,
        variables: &[(&str, &str)],
    ) -> String {
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                UriPart::Literal(text) => uri.push_str(text),
                UriPart::Variable(field) => {
                    match variables.iter().find(|(name, _)| name == field) {
                        Some((_, value)) => uri.push_str(value),
                        None => uri.push_str(&field_of(instance, field)),
                    }
                }
            }
        }
        uri
    }
}

/// Returns the value of a field, empty if the instance has none.
fn field_of<P>(instance: &ServiceInstance<P>, field: &str) -> String {
    let number = |port: Option<u16>| port.map(|port| port.to_string()).unwrap_or_default();
    match field {
        "[" => "{".to_owned(),
        "]" => "}".to_owned(),
        "scheme" if instance.ssl_port.is_some() => "https".to_owned(),
        "scheme" => "http".to_owned(),
        "name" => instance.name.clone(),
        "id" => instance.id.clone(),
        "address" => instance.address.clone().unwrap_or_default(),
        "port" => number(instance.port),
        "ssl-port" => number(instance.ssl_port),
        "registration-time-utc" => instance.registration_time_utc.to_string(),
        "service-type" => instance.service_type.as_str().to_ascii_lowercase(),
        _ => String::new(),
    }
}

impl FromStr for UriSpec {
    type Err = UriSpecError;

    fn from_str(text: &str) -> Result<Self, UriSpecError> {
        let mut parts = Vec::new();
        let (mut begin, mut field_at) = (0, None);
        let mut push = |part: &str, is_field: bool| match (part, is_field) {
            ("", _) => {}
            (field, true) => parts.push(UriPart::Variable(field.trim().to_owned())),
            (text, false) => parts.push(UriPart::Literal(text.to_owned())),
        };
        for (at, brace) in text.match_indices(['{', '}']) {
            let is_open = brace == "{";
            match field_at {
                Some(_) if is_open => return Err(UriSpecError::Nested { at }),
                None if !is_open => return Err(UriSpecError::Unopened { at }),
                _ => push(&text[begin..at], field_at.is_some()),
            }
            field_at = is_open.then_some(at);
            begin = at + 1;
        }
        if let Some(at) = field_at {
            return Err(UriSpecError::Unclosed { at });
        }
        push(&text[begin..], false);
        Ok(Self { parts })
    }
}

impl fmt::Display for UriSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                UriPart::Literal(text) => f.write_str(text)?,
                UriPart::Variable(field) => write!(f, "{{{field}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_replaced_and_unknown_ones_left_out() {
        let text = "{scheme}://{ address }:{ssl-port}{nothing}/{[}{name}{]}";
        let spec: UriSpec = text.parse().unwrap();
        let instance: ServiceInstance = ServiceInstance::new("a").address("h").ssl_port(443);
        assert_eq!(spec.build(&instance), "https://h:443/{a}");
        assert_eq!(
            spec.build_with(&instance, &[("name", "b"), ("nothing", "!")]),
            "https://h:443!/{b}"
        );
        assert_eq!(spec.to_string().parse(), Ok(spec));
    }

    #[test]
    fn braces_that_do_not_match_are_refused() {
        assert_eq!(
            "{a{b}".parse::<UriSpec>(),
            Err(UriSpecError::Nested { at: 2 })
        );
        assert_eq!(
            "a}".parse::<UriSpec>(),
            Err(UriSpecError::Unopened { at: 1 })
        );
        assert_eq!(
            "ab{c".parse::<UriSpec>(),
            Err(UriSpecError::Unclosed { at: 2 })
        );
    }
}
