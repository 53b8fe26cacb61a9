//! Where the token of control comes from, beside the command line.

use std::{env, path::Path};

use minikeeper::{Secret, files};

/// The variable of the environment, for servers and for `minikeeper ctl`.
pub(crate) const VARIABLE: &str = "MINIKEEPER_CONTROL_TOKEN";

/// The token in a file: its only line.
///
/// # Errors
/// Why there is none. Never quotes the file: it may be another one's secret.
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

/// The token in the environment. An empty variable is none: that is how many shells take one away.
pub(crate) fn of_environment() -> Option<Secret> {
    let token = env::var(VARIABLE).ok()?;
    (!token.is_empty()).then(|| token.into())
}
