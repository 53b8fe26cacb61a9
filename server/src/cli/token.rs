//! Reads the control token from a file or the environment.

use std::{env, path::Path};

use minikeeper::Secret;
use minikeeper_core::files;

/// The environment variable, for servers and for `minikeeper ctl`.
pub(crate) const VARIABLE: &str = "MINIKEEPER_CONTROL_TOKEN";

/// Reads the token in a file, which is its only line.
///
/// # Errors
/// When there is no token. The error never quotes the file, which may contain a different secret.
pub(crate) fn read(file: &Path) -> Result<Secret, String> {
    let text = files::read_to_string(file, files::SETTINGS_BYTES_MAX)
        .map_err(|error| format!("cannot read the control token in {file:?}: {error}"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "{file:?} has no control token; it must be one line of printable ASCII without blanks"
        ));
    }
    Ok(line.into())
}

/// Returns the token in the environment. An empty variable counts as none, because many users clear a
/// variable that way.
pub(crate) fn of_environment() -> Option<Secret> {
    let token = env::var(VARIABLE).ok()?;
    (!token.is_empty()).then(|| token.into())
}
