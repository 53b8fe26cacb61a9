//! Text that must not be shown.

use core::{fmt, ops::Deref};

/// A password, a token or the hash of one, which `Debug` does not show: settings with secrets may
/// be logged. There is no `Display`; to use the text, dereference.
///
/// ```
/// use minikeeper_engine::Secret;
/// let secret = Secret::from("s3cret");
/// assert_eq!(format!("{secret:?}"), "Secret");
/// assert_eq!(secret.len(), 6);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
