//! Why a command failed, in the words of zkCli.

use minikeeper_client::{Error, ErrorClass, ErrorCode, PathError};
use minikeeper_protocol::PathFault;

/// The failure of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) text: String,
    /// The exit code of the program if this was its last command.
    pub(crate) exit_code: u8,
}

impl Failure {
    /// Returns the failure of a request. `path` is that of the command.
    pub(crate) fn of(error: &Error, path: &str) -> Self {
        if let Error::Path(error) = error {
            return Self::from(invalid_path(error));
        }
        if let Some(code) = error.code() {
            return Self::from(refused(code, path));
        }
        Self::from(match error.class() {
            ErrorClass::SessionOver => keeper("Session expired", path),
            ErrorClass::Again | ErrorClass::Closed => connection_loss(path),
            _ => error.to_string(),
        })
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, exit_code: 1 }
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

pub(crate) fn connection_loss(path: &str) -> String {
    keeper("ConnectionLoss", path)
}

/// Returns the text of an error code.
pub(crate) fn refused(code: ErrorCode, path: &str) -> String {
    match code {
        ErrorCode::NoNode => format!("Node does not exist: {path}"),
        ErrorCode::NoChildrenForEphemerals => format!("Ephemerals cannot have children: {path}"),
        ErrorCode::NodeExists => format!("Node already exists: {path}"),
        ErrorCode::NotEmpty => format!("Node not empty: {path}"),
        ErrorCode::NotReadOnly => format!("Not a read-only call: {path}"),
        ErrorCode::InvalidAcl => format!("Acl is not valid : {path}"),
        ErrorCode::NoAuth => format!("Insufficient permission : {path}"),
        ErrorCode::BadArguments => format!("Arguments are not valid : {path}"),
        ErrorCode::BadVersion => format!("version No is not valid : {path}"),
        ErrorCode::QuotaExceeded => format!("Quota has exceeded : {path}"),
        ErrorCode::ReconfigInProgress => {
            "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)"
                .to_owned()
        }
        ErrorCode::NewConfigNoQuorum => {
            "No quorum of new config is connected and up-to-date with the leader of last commmitted \
             config - try invoking reconfiguration after new servers are connected and synced"
                .to_owned()
        }
        code => raw(code, path),
    }
}

/// Returns the text of an error code as Java's `KeeperException` has it.
pub(crate) fn raw(code: ErrorCode, path: &str) -> String {
    let text = match code {
        ErrorCode::SystemError => "SystemError",
        ErrorCode::RuntimeInconsistency => "RuntimeInconsistency",
        ErrorCode::DataInconsistency => "DataInconsistency",
        ErrorCode::ConnectionLoss => "ConnectionLoss",
        ErrorCode::MarshallingError => "MarshallingError",
        ErrorCode::Unimplemented => "Unimplemented",
        ErrorCode::OperationTimeout => "OperationTimeout",
        ErrorCode::BadArguments => "BadArguments",
        ErrorCode::NewConfigNoQuorum => "NewConfigNoQuorum",
        ErrorCode::ReconfigInProgress => "ReconfigInProgress",
        ErrorCode::ApiError => "APIError",
        ErrorCode::NoNode => "NoNode",
        ErrorCode::NoAuth => "NoAuth",
        ErrorCode::BadVersion => "BadVersion",
        ErrorCode::NoChildrenForEphemerals => "NoChildrenForEphemerals",
        ErrorCode::NodeExists => "NodeExists",
        ErrorCode::InvalidAcl => "InvalidACL",
        ErrorCode::AuthFailed => "AuthFailed",
        ErrorCode::NotEmpty => "Directory not empty",
        ErrorCode::SessionExpired => "Session expired",
        ErrorCode::InvalidCallback => "Invalid callback",
        ErrorCode::SessionMoved => "Session moved",
        ErrorCode::NotReadOnly => "Not a read-only call",
        ErrorCode::EphemeralOnLocalSession => "Ephemeral node on local session",
        ErrorCode::NoWatcher => "No such watcher",
        ErrorCode::ReconfigDisabled => "Reconfig is disabled",
        ErrorCode::SessionClosedRequireSaslAuth => {
            "Session closed because client failed to authenticate"
        }
        ErrorCode::QuotaExceeded => "Quota has exceeded",
        ErrorCode::ThrottledOp => "Op throttled due to high load",
        code => return keeper(&format!("Unknown error {}", code.name()), path),
    };
    keeper(text, path)
}

fn keeper(text: &str, path: &str) -> String {
    if path.is_empty() {
        format!("KeeperErrorCode = {text}")
    } else {
        format!("KeeperErrorCode = {text} for {path}")
    }
}

/// Returns the text of an invalid path. Positions count UTF-16 units, as in Java.
fn invalid_path(error: &PathError) -> String {
    let PathError { path, fault, at } = error;
    let (before, rest) = path.split_at_checked(*at).unwrap_or((path, ""));
    // Java notices `..` at its second dot.
    let at = before.encode_utf16().count() + usize::from(rest.starts_with(".."));
    let reason = match fault {
        PathFault::Empty => return "Path length must be > 0".to_owned(),
        PathFault::NotAbsolute => return "Path must start with / character".to_owned(),
        PathFault::TrailingSlash => return "Path must not end with / character".to_owned(),
        PathFault::EmptyComponent => "empty node name specified",
        PathFault::Relative => "relative paths not allowed",
        PathFault::ForbiddenCharacter('\0') => "null character not allowed",
        _ => "invalid character",
    };
    format!("Invalid path string \"{path}\" caused by {reason} @{at}")
}

#[cfg(test)]
mod tests {
    use minikeeper_protocol::ZnodePath;

    use super::*;

    #[test]
    fn invalid_paths_are_explained_as_zookeeper_explains_them() {
        for (path, expected) in [
            ("", "Path length must be > 0"),
            ("a", "Path must start with / character"),
            ("/a/", "Path must not end with / character"),
            (
                "/ä//b",
                "Invalid path string \"/ä//b\" caused by empty node name specified @3",
            ),
            (
                "/a/./b",
                "Invalid path string \"/a/./b\" caused by relative paths not allowed @3",
            ),
            (
                "/a/../b",
                "Invalid path string \"/a/../b\" caused by relative paths not allowed @4",
            ),
            (
                "/a\u{1}",
                "Invalid path string \"/a\u{1}\" caused by invalid character @2",
            ),
        ] {
            let error = ZnodePath::new(path).unwrap_err();
            assert_eq!(Failure::of(&error.into(), path).text, expected);
        }
    }

    #[test]
    fn error_codes_are_worded_as_zkcli_words_them() {
        let of = |code| Failure::of(&Error::answered("create", "/x".to_owned(), code), "/x").text;
        assert_eq!(of(ErrorCode::NoNode), "Node does not exist: /x");
        assert_eq!(
            of(ErrorCode::NoWatcher),
            "KeeperErrorCode = No such watcher for /x"
        );
        let expired = "KeeperErrorCode = Session expired for /x";
        assert_eq!(of(ErrorCode::SessionExpired), expired);
        let lost = "KeeperErrorCode = ConnectionLoss for /x";
        assert_eq!(of(ErrorCode::ConnectionLoss), lost);
    }
}
