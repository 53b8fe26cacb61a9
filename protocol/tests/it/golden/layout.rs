//! The records of `docs/zookeeper-protocol.md` section 4 that section 27 does not show. Every field
//! has a different value, so that the tests notice swapped fields even if both directions swap
//! them.

use bytes::Bytes;
use minikeeper_protocol::{
    Acl, AclList, ClientInfo, Create, CreateOp, ErrorCode, MultiResult, OpCode, Perms, Reply,
    Request, SessionId, Stat, Zxid, frame,
};

use super::{assert_reply, assert_request, decode_reply, decode_request, gold, ok, vectors::hex};

const STAT: Stat = Stat {
    czxid: Zxid(0x11),
    mzxid: Zxid(0x22),
    ctime_ms: 0x33,
    mtime_ms: 0x44,
    version: 0x55,
    cversion: 0x66,
    aversion: 0x77,
    ephemeral_owner: SessionId(0x88),
    data_length: 0x99,
    num_children: 0xaa,
    pzxid: Zxid(0xbb),
};

const STAT_HEX: &str = "0000000000000011 0000000000000022 0000000000000033 0000000000000044
    00000055 00000066 00000077 0000000000000088 00000099 000000aa 00000000000000bb";

#[test]
fn stat_fields_are_in_the_order_of_the_reference() {
    assert_reply_body(STAT_HEX, OpCode::Exists, &Reply::Stat(STAT));
}

#[test]
fn create_ttl_is_a_create_followed_by_the_ttl() {
    let acl = Acl {
        perms: Perms(3),
        scheme: Some("s".into()),
        id: Some("i".into()),
    };
    let create = |op, ttl_ms| {
        Request::Create(Create {
            op,
            path: gold(),
            data: Some(Bytes::from_static(b"hi")),
            acl: AclList::new(std::slice::from_ref(&acl)),
            flags: 5,
            ttl_ms,
        })
    };
    let body = "00000005 2f676f6c64 00000002 6869
        00000001 00000003 00000001 73 00000001 69 00000005";
    assert_request_body(body, 19, &create(CreateOp::Container, 0));
    assert_request_body(
        &format!("{body} 0000000000001388"),
        21,
        &create(CreateOp::Ttl, 5000),
    );
}

#[test]
fn requests_with_only_a_path_encode_just_the_path() {
    let path = gold;
    for (code, request) in [
        (20, Request::DeleteContainer { path: path() }),
        (6, Request::GetAcl { path: path() }),
        (9, Request::Sync { path: path() }),
        (103, Request::GetEphemerals { prefix: path() }),
        (104, Request::GetAllChildrenNumber { path: path() }),
    ] {
        assert_request_body("00000005 2f676f6c64", code, &request);
    }
}

#[test]
fn requests_with_a_path_and_a_number_encode_them_in_that_order() {
    let (path, version, kind, mode) = (gold, 7, 7, 7);
    for (code, request) in [
        (
            2,
            Request::Delete {
                path: path(),
                version,
            },
        ),
        (
            13,
            Request::Check {
                path: path(),
                version,
            },
        ),
        (17, Request::CheckWatches { path: path(), kind }),
        (18, Request::RemoveWatches { path: path(), kind }),
        (106, Request::AddWatch { path: path(), mode }),
    ] {
        assert_request_body("00000005 2f676f6c64 00000007", code, &request);
    }
}

#[test]
fn requests_with_a_path_and_a_watch_encode_them_in_that_order() {
    let (path, watch) = (gold, true);
    for (code, request) in [
        (
            3,
            Request::Exists {
                path: path(),
                watch,
            },
        ),
        (
            4,
            Request::GetData {
                path: path(),
                watch,
            },
        ),
        (
            8,
            Request::GetChildren {
                path: path(),
                watch,
            },
        ),
        (
            12,
            Request::GetChildren2 {
                path: path(),
                watch,
            },
        ),
    ] {
        assert_request_body("00000005 2f676f6c64 01", code, &request);
    }
}

#[test]
fn requests_without_a_body_encode_just_the_header() {
    for (code, request) in [
        (11, Request::Ping),
        (107, Request::WhoAmI),
        (-10, Request::CreateSession),
        (-11, Request::CloseSession),
    ] {
        assert_request_body("", code, &request);
    }
}

#[test]
fn set_watches2_has_five_vectors_in_the_order_of_the_reference() {
    assert_request_body(
        "0000000000000009 00000001 00000001 61 00000001 00000001 62 00000001 00000001 63
        00000001 00000001 64 00000002 00000001 65 00000001 66",
        105,
        &Request::SetWatches2 {
            relative_zxid: Zxid(9),
            data: vec!["a".into()],
            exist: vec!["b".into()],
            child: vec!["c".into()],
            persistent: vec!["d".into()],
            persistent_recursive: vec!["e".into(), "f".into()],
        },
    );
}

#[test]
fn set_watches_has_three_vectors_in_the_order_of_the_reference() {
    assert_request_body(
        "0000000000000009 00000001 00000001 61 00000001 00000001 62 00000001 00000001 63",
        101,
        &Request::SetWatches {
            relative_zxid: Zxid(9),
            data: vec!["a".into()],
            exist: vec!["b".into()],
            child: vec!["c".into()],
        },
    );
}

#[test]
fn reconfig_has_three_strings_and_a_long() {
    assert_request_body(
        "00000001 6a 00000001 6c 00000001 6d 00000000000000ff",
        16,
        &Request::Reconfig {
            joining: Some("j".into()),
            leaving: Some("l".into()),
            members: Some("m".into()),
            config_id: 0xff,
        },
    );
}

#[test]
fn sasl_and_auth_encode_any_bytes() {
    let bytes = Some(Bytes::from_static(b"\0\xff"));
    let token = bytes.clone();
    assert_request_body("00000002 00ff", 102, &Request::Sasl { token });
    assert_request_body(
        "00000003 00000001 73 00000002 00ff",
        100,
        &Request::Auth {
            kind: 3,
            scheme: Some("s".into()),
            data: bytes,
        },
    );
}

#[test]
fn replies_are_laid_out_as_the_reference_says() {
    let with_stat = |front: &str| format!("{front} {STAT_HEX}");
    let names = "00000002 00000001 61 00000001 62";
    let strings = || vec!["a".into(), "b".into()];
    let token = Some(Bytes::from_static(b"t"));
    let acl = AclList::world_read();
    let world = "00000001 00000001 00000005 776f726c64 00000006 616e796f6e65";
    let info = ClientInfo {
        scheme: "ip".into(),
        user: "::1".into(),
    };
    for (op, body, reply) in [
        (
            OpCode::CreateTtl,
            with_stat("00000001 2f"),
            Reply::PathStat("/".into(), STAT),
        ),
        (
            OpCode::GetData,
            with_stat("00000001 74"),
            Reply::Data(token.clone(), STAT),
        ),
        (OpCode::GetAcl, with_stat(world), Reply::Acl(acl, STAT)),
        (
            OpCode::GetChildren,
            names.into(),
            Reply::Children(strings()),
        ),
        (
            OpCode::GetChildren2,
            with_stat(names),
            Reply::Children2(strings(), STAT),
        ),
        (
            OpCode::GetEphemerals,
            names.into(),
            Reply::Ephemerals(strings()),
        ),
        (
            OpCode::GetAllChildrenNumber,
            "00000007".into(),
            Reply::Count(7),
        ),
        (OpCode::Sasl, "00000001 74".into(), Reply::Token(token)),
        (
            OpCode::WhoAmI,
            "00000001 00000002 6970 00000003 3a3a31".into(),
            Reply::ClientInfos(vec![info]),
        ),
    ] {
        assert_reply_body(&body, op, &reply);
    }
}

#[test]
fn multi_results_are_laid_out_as_the_reference_says() {
    assert_reply_body(
        &format!(
            "00000001 00 00000000 00000001 61
            0000000f 00 00000000 00000001 62 {STAT_HEX}
            00000002 00 00000000
            00000005 00 00000000 {STAT_HEX}
            0000000d 00 00000000
            00000004 00 00000000 ffffffff {STAT_HEX}
            00000008 00 00000000 00000001 00000001 63
            ffffffff 00 ffffff9b ffffff9b
            ffffffff 01 ffffffff"
        ),
        OpCode::Multi,
        &Reply::Multi(vec![
            MultiResult::Create { path: "a".into() },
            MultiResult::Create2 {
                path: "b".into(),
                stat: STAT,
            },
            MultiResult::Delete,
            MultiResult::SetData { stat: STAT },
            MultiResult::Check,
            MultiResult::GetData {
                data: None,
                stat: STAT,
            },
            MultiResult::GetChildren {
                names: vec!["c".into()],
            },
            MultiResult::Error(Some(ErrorCode::NoNode)),
        ]),
    );
}

#[test]
fn records_one_byte_short_are_refused() {
    for (op, body) in [
        (OpCode::Delete, "00000005 2f676f6c64 000000"),
        (
            OpCode::SetWatches2,
            "0000000000000009 00000000 00000000 00000000 00000000 000000",
        ),
        (
            OpCode::Reconfig,
            "ffffffff ffffffff ffffffff 00000000000000",
        ),
        (
            OpCode::CreateTtl,
            "ffffffff ffffffff ffffffff 00000005 00000000000013",
        ),
    ] {
        let error = decode_request(op, &hex(body)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "message ends 1 bytes early",
            "{}",
            op.name()
        );
    }
    let stat = hex(STAT_HEX);
    let error = decode_reply(OpCode::Exists, &stat[..67]).unwrap_err();
    assert_eq!(error.to_string(), "message ends 1 bytes early");
}

#[track_caller]
fn assert_request_body(body: &str, code: i32, expected: &Request) {
    let header = format!("00000001 {code:08x}");
    assert_request(&framed(&format!("{header} {body}")), 1, expected);
}

#[track_caller]
fn assert_reply_body(body: &str, op: OpCode, expected: &Reply) {
    let header = "00000001 0000000000000001 00000000";
    assert_reply(&framed(&format!("{header} {body}")), op, ok(1, 1), expected);
}

/// Returns the hex of a message with its length prefix.
fn framed(message: &str) -> String {
    let mut out = Vec::new();
    frame::put(&mut out, |out| out.extend(hex(message)));
    let (prefix, _) = out.split_at(frame::PREFIX_BYTES);
    let prefix: String = prefix.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix} {message}")
}
