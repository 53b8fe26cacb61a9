//! The numbers of `docs/zookeeper-protocol.md` section 3, and the texts of errors.

use minikeeper_protocol::{
    AddWatchMode, Create, CreateMode, DecodeError, ErrorCode, EventKind, FrameError, OpCode,
    SessionId, UnknownOp, WatcherType, Zxid,
};

#[test]
fn error_texts_say_thing_fault_and_value() {
    let texts = [
        FrameError::TooLong {
            length: 4_194_305,
            bytes_max: 1_048_575,
        }
        .to_string(),
        FrameError::Negative { length: -7 }.to_string(),
        DecodeError::Truncated { missing: 3 }.to_string(),
        DecodeError::NegativeLength { length: -2 }.to_string(),
        DecodeError::MultiOp { op: 7 }.to_string(),
        DecodeError::Null { field: "path" }.to_string(),
        UnknownOp(10).to_string(),
        ErrorCode::BadVersion.to_string(),
        ErrorCode::Other(-126).to_string(),
    ];
    assert_eq!(
        texts,
        [
            "frame of 4194305 bytes exceeds the limit of 1048575 bytes",
            "frame length -7 is negative",
            "message ends 3 bytes early",
            "field length -2 is below -1",
            "operation code 7 is not permitted in this multi",
            "path is null",
            "unknown operation code 10",
            "version does not match (BADVERSION -103)",
            "unknown error (OTHER -126)",
        ]
    );
    assert_eq!(Zxid(0x48a).to_string(), "0x48a");
    assert_eq!(SessionId(-1).to_string(), "0xffffffffffffffff");
}

// The numbers of section 3.

// `layout` checks the number of each operation, with the bytes of its request.
#[test]
fn op_codes_and_names_are_distinct_and_map_back() {
    for &op in OpCode::ALL {
        assert_eq!(OpCode::from_code(op.code()), Some(op));
        assert_eq!(OpCode::from_name(op.name()), Some(op));
    }
    let known = (-200..200).filter(|code| OpCode::from_code(*code).is_some());
    assert_eq!(known.count(), OpCode::ALL.len());
    assert_eq!(OpCode::try_from(10), Err(UnknownOp(10)));
}

#[test]
fn error_codes_have_zookeepers_names() {
    let table = [
        (-1, "SYSTEMERROR"),
        (-2, "RUNTIMEINCONSISTENCY"),
        (-3, "DATAINCONSISTENCY"),
        (-4, "CONNECTIONLOSS"),
        (-5, "MARSHALLINGERROR"),
        (-6, "UNIMPLEMENTED"),
        (-7, "OPERATIONTIMEOUT"),
        (-8, "BADARGUMENTS"),
        (-12, "UNKNOWNSESSION"),
        (-13, "NEWCONFIGNOQUORUM"),
        (-14, "RECONFIGINPROGRESS"),
        (-100, "APIERROR"),
        (-101, "NONODE"),
        (-102, "NOAUTH"),
        (-103, "BADVERSION"),
        (-108, "NOCHILDRENFOREPHEMERALS"),
        (-110, "NODEEXISTS"),
        (-111, "NOTEMPTY"),
        (-112, "SESSIONEXPIRED"),
        (-113, "INVALIDCALLBACK"),
        (-114, "INVALIDACL"),
        (-115, "AUTHFAILED"),
        (-118, "SESSIONMOVED"),
        (-119, "NOTREADONLY"),
        (-120, "EPHEMERALONLOCALSESSION"),
        (-121, "NOWATCHER"),
        (-122, "REQUESTTIMEOUT"),
        (-123, "RECONFIGDISABLED"),
        (-124, "SESSIONCLOSEDREQUIRESASLAUTH"),
        (-125, "QUOTAEXCEEDED"),
        (-127, "THROTTLEDOP"),
    ];
    for (code, name) in table {
        assert_eq!(ErrorCode::from_code(code).name(), name);
    }
    for error in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_code(error.code()), *error);
    }
    assert_eq!(ErrorCode::from_code(-126), ErrorCode::Other(-126));
    assert_eq!(ErrorCode::Other(-126).code(), -126);
}

#[test]
fn numbers_of_modes_types_and_events_are_exactly_the_documented_ones() {
    let modes = |flags| CreateMode::from_flags(flags).map(CreateMode::flags);
    let types = |code| WatcherType::from_code(code).map(WatcherType::code);
    let adds = |code| AddWatchMode::from_code(code).map(AddWatchMode::code);
    let events = |code| EventKind::from_code(code).map(EventKind::code);
    for code in (-5..15).chain([i32::MIN, i32::MAX]) {
        assert_eq!(modes(code), (0..=6).contains(&code).then_some(code));
        assert_eq!(types(code), (1..=5).contains(&code).then_some(code));
        assert_eq!(adds(code), (0..=1).contains(&code).then_some(code));
        assert_eq!(events(code), (1..=4).contains(&code).then_some(code));
    }
}

#[test]
fn create_modes_have_the_properties_of_their_names() {
    let flags = |is: fn(CreateMode) -> bool| -> Vec<i32> {
        (0..=6)
            .filter(|&flags| is(CreateMode::from_flags(flags).unwrap()))
            .collect()
    };
    assert_eq!(flags(CreateMode::is_ephemeral), [1, 3]);
    assert_eq!(flags(CreateMode::is_sequential), [2, 3, 6]);
    assert_eq!(flags(CreateMode::has_ttl), [5, 6]);
}

#[test]
fn create_uses_the_operation_that_its_mode_needs() {
    for (flags, op) in [
        (0, 15),
        (1, 15),
        (2, 15),
        (3, 15),
        (4, 19),
        (5, 21),
        (6, 21),
    ] {
        let create = Create::new("/a", b"", CreateMode::from_flags(flags).unwrap());
        assert_eq!(create.op.op().code(), op);
        assert_eq!(create.flags, flags);
    }
}
