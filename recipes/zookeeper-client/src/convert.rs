//! Converts between the types of the two crates.

use minikeeper_client::{
    Acl, AclList, Cause, CreateMode, CreateOptions, Data, Error, ErrorCode, EventKind, Fired,
    Perms, SessionId, Stat, Zxid,
};
use zookeeper_client::{self as theirs, Acls};

/// Returns the server's error code, or `None` if there was no reply.
pub(crate) fn code(error: &theirs::Error) -> Option<ErrorCode> {
    Some(match error {
        theirs::Error::BadArguments(_) => ErrorCode::BadArguments,
        theirs::Error::NoNode => ErrorCode::NoNode,
        theirs::Error::NoAuth => ErrorCode::NoAuth,
        theirs::Error::BadVersion => ErrorCode::BadVersion,
        theirs::Error::NoChildrenForEphemerals => ErrorCode::NoChildrenForEphemerals,
        theirs::Error::NodeExists => ErrorCode::NodeExists,
        theirs::Error::NotEmpty => ErrorCode::NotEmpty,
        theirs::Error::InvalidAcl => ErrorCode::InvalidAcl,
        theirs::Error::SessionMoved => ErrorCode::SessionMoved,
        theirs::Error::NotReadOnly => ErrorCode::NotReadOnly,
        theirs::Error::NoWatcher => ErrorCode::NoWatcher,
        theirs::Error::QuotaExceeded => ErrorCode::QuotaExceeded,
        theirs::Error::Throttled => ErrorCode::ThrottledOp,
        theirs::Error::MarshallingError => ErrorCode::MarshallingError,
        theirs::Error::Unimplemented => ErrorCode::Unimplemented,
        theirs::Error::ReconfigDisabled => ErrorCode::ReconfigDisabled,
        theirs::Error::UnexpectedErrorCode(code) => ErrorCode::from_code(*code),
        _ => return None,
    })
}

/// Converts an error. The client does not distinguish a request that was not sent from one whose
/// reply was lost, so every error that is not a refusal becomes [`Error::OutcomeUnknown`].
pub(crate) fn error(op: &'static str, path: &str, error: &theirs::Error) -> Error {
    let path = path.to_owned();
    if let Some(code) = code(error) {
        return Error::answered(op, path, code);
    }
    let cause = match error {
        theirs::Error::SessionExpired => Cause::SessionLost,
        theirs::Error::AuthFailed | theirs::Error::ClientClosed => Cause::Closed,
        _ => Cause::ConnectionLost,
    };
    Error::OutcomeUnknown { op, path, cause }
}

pub(crate) const fn stat(stat: &theirs::Stat) -> Stat {
    Stat {
        czxid: Zxid(stat.czxid),
        mzxid: Zxid(stat.mzxid),
        ctime_ms: stat.ctime,
        mtime_ms: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: SessionId(stat.ephemeral_owner),
        data_length: stat.data_length,
        num_children: stat.num_children,
        pzxid: Zxid(stat.pzxid),
    }
}

pub(crate) fn data(data: Vec<u8>, stat: &theirs::Stat) -> Data {
    let (data, stat) = (Some(data.into()), self::stat(stat));
    Data { data, stat }
}

/// Converts options, with this access list.
pub(crate) fn options<'a>(
    options: &CreateOptions,
    acls: &'a [theirs::Acl],
) -> theirs::CreateOptions<'a> {
    let mode = match options.mode() {
        CreateMode::PersistentWithTtl => theirs::CreateMode::Persistent,
        CreateMode::PersistentSequentialWithTtl => theirs::CreateMode::PersistentSequential,
        CreateMode::Persistent => theirs::CreateMode::Persistent,
        CreateMode::Ephemeral => theirs::CreateMode::Ephemeral,
        CreateMode::PersistentSequential => theirs::CreateMode::PersistentSequential,
        CreateMode::EphemeralSequential => theirs::CreateMode::EphemeralSequential,
        CreateMode::Container => theirs::CreateMode::Container,
    };
    let converted = mode.with_acls(Acls::new(acls));
    if options.mode().has_ttl() {
        return converted.with_ttl(options.time_to_live());
    }
    converted
}

pub(crate) fn acls(list: &AclList) -> Vec<theirs::Acl> {
    let entry = |acl: Acl| {
        let scheme = acl.scheme.unwrap_or_default();
        let id = acl.id.unwrap_or_default();
        let who = theirs::AuthId::new(&scheme.to_str_lossy(), &id.to_str_lossy());
        let perms = [
            (Perms::READ, theirs::Permission::READ),
            (Perms::WRITE, theirs::Permission::WRITE),
            (Perms::CREATE, theirs::Permission::CREATE),
            (Perms::DELETE, theirs::Permission::DELETE),
            (Perms::ADMIN, theirs::Permission::ADMIN),
        ];
        let given = perms
            .into_iter()
            .filter(|(ours, _)| acl.perms.0 & ours.0 != 0);
        let none = theirs::Permission::NONE;
        theirs::Acl::new(given.fold(none, |all, (_, theirs)| all | theirs), who)
    };
    list.entries().map(entry).collect()
}

pub(crate) const fn fired(event: &theirs::WatchedEvent) -> Fired {
    let kind = match event.event_type {
        theirs::EventType::NodeCreated => EventKind::Created,
        theirs::EventType::NodeDeleted => EventKind::Deleted,
        theirs::EventType::NodeDataChanged => EventKind::DataChanged,
        theirs::EventType::NodeChildrenChanged => EventKind::ChildrenChanged,
        theirs::EventType::Session => return Fired::EpochOver,
    };
    let zxid = Zxid(event.zxid);
    Fired::Event { kind, zxid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_other_than_refusals_have_an_unknown_outcome() {
        for (theirs, cause) in [
            (theirs::Error::ConnectionLoss, Cause::ConnectionLost),
            (theirs::Error::Timeout, Cause::ConnectionLost),
            (
                theirs::Error::UnexpectedError("reset".to_owned()),
                Cause::ConnectionLost,
            ),
            (theirs::Error::SessionExpired, Cause::SessionLost),
            (theirs::Error::ClientClosed, Cause::Closed),
            (theirs::Error::AuthFailed, Cause::Closed),
        ] {
            let (op, path) = ("create2", "/a".to_owned());
            let expected = Error::OutcomeUnknown { op, path, cause };
            assert_eq!(error("create2", "/a", &theirs), expected);
        }
    }

    #[test]
    fn refusals_keep_their_codes() {
        let refused = |theirs| error("create2", "/a", &theirs).code();
        let number = ErrorCode::RuntimeInconsistency.code();
        for (theirs, code) in [
            (theirs::Error::NoNode, ErrorCode::NoNode),
            (theirs::Error::NodeExists, ErrorCode::NodeExists),
            (theirs::Error::Throttled, ErrorCode::ThrottledOp),
            (
                theirs::Error::UnexpectedErrorCode(number),
                ErrorCode::RuntimeInconsistency,
            ),
        ] {
            assert_eq!(refused(theirs), Some(code));
        }
    }
}
