//! Nulls, empty values, trailing bytes, odd counts, and refusals: `docs/zookeeper-protocol.md`
//! sections 2, 6.2, 12.5 and 13.

// Long because: a list of odd encodings, byte for byte.

use bytes::Bytes;
use minikeeper_protocol::{
    Acl, AclList, ConnectRequest, Create, CreateOp, DecodeError, FrameError, MultiOp, MultiReadOp,
    OpCode, Perms, Reader, Reply, Request, Ustring, WatcherEvent, Zxid, frame, jute, multi,
};

use super::{
    CREATED, assert_connect_request, assert_request, decode_reply, decode_request, gold, message,
    vectors::{self, hex},
};

// Primitive encodings, section 2.2.

#[test]
fn null_and_empty_data_are_distinct_both_ways() {
    for (data, length) in [(None, "ffffffff"), (Some(Bytes::new()), "00000000")] {
        let request = Request::SetData {
            path: gold(),
            data: data.clone(),
            version: -1,
        };
        let wire = format!("00000019 00000001 00000005 00000005 2f676f6c64 {length} ffffffff");
        assert_request(&wire, 1, &request);

        let mut body = hex(length);
        CREATED.encode(&mut body);
        assert_eq!(
            decode_reply(OpCode::GetData, &body),
            Ok(Reply::Data(data, CREATED))
        );
    }
}

#[test]
fn null_and_empty_path_are_distinct_both_ways() {
    assert_request(
        "0000000c 00000001 00000006 ffffffff",
        1,
        &Request::GetAcl { path: None },
    );
    assert_request(
        "0000000c 00000001 00000006 00000000",
        1,
        &Request::GetAcl {
            path: Some(Ustring::default()),
        },
    );
}

#[test]
fn bool_of_any_value_but_zero_is_true() {
    for (byte, watch) in [(0, false), (1, true), (2, true), (0x80, true), (0xff, true)] {
        let mut body = hex("00000005 2f676f6c64");
        body.push(byte);
        assert_eq!(
            decode_request(OpCode::GetData, &body),
            Ok(Request::GetData {
                path: gold(),
                watch
            })
        );
    }
}

#[test]
fn bytes_after_a_record_are_ignored() {
    let body = hex("00000005 2f676f6c64 01 deadbeef");
    assert_eq!(
        decode_request(OpCode::GetData, &body),
        Ok(Request::GetData {
            path: gold(),
            watch: true
        })
    );
    assert_eq!(
        decode_request(OpCode::CloseSession, &body),
        Ok(Request::CloseSession)
    );
    assert_eq!(
        decode_reply(OpCode::GetAllChildrenNumber, &hex("00000007 ff")),
        Ok(Reply::Count(7))
    );

    let mut connect = hex(&vectors::NEW_SESSION.client["0000002d".len()..]);
    connect.extend(hex("deadbeef"));
    assert_eq!(
        ConnectRequest::decode(&mut Reader::new(&connect.into())),
        Ok(ConnectRequest::new(10_000))
    );
}

#[test]
fn vector_count_of_minus_one_is_null_and_below_is_empty() {
    let vector = |text: &str| Reader::new(&hex(text).into()).ustrings();
    assert_eq!(vector("ffffffff"), Ok(None));
    assert_eq!(vector("fffffffe"), Ok(Some(Vec::new())));
    assert_eq!(vector("80000000"), Ok(Some(Vec::new())));
    assert_eq!(vector("00000000"), Ok(Some(Vec::new())));
}

#[test]
fn vector_with_null_string_reads_as_empty_string() {
    let wire = Bytes::from(hex("00000002 ffffffff 00000001 61"));
    assert_eq!(
        Reader::new(&wire).ustrings(),
        Ok(Some(vec![Ustring::default(), "a".into()]))
    );
}

#[test]
fn vector_longer_than_its_message_is_refused() {
    let vector = |text: &str| Reader::new(&hex(text).into()).ustrings();
    let truncated = |missing| Err(DecodeError::Truncated { missing });
    assert_eq!(vector("7fffffff"), truncated(4));
    assert_eq!(vector("7fffffff 00000001 61 000000"), truncated(1));
    assert_eq!(vector("00000001 00000005 61"), truncated(4));
    assert_eq!(vector("000000"), truncated(1));
}

#[test]
fn buffer_with_length_below_minus_one_is_refused() {
    for (text, length) in [("fffffffe", -2), ("80000000", i32::MIN)] {
        let wire = Bytes::from(hex(text));
        let error = Err(DecodeError::NegativeLength { length });
        assert_eq!(Reader::new(&wire).buffer(), error);
    }
}

#[test]
fn buffer_longer_than_its_message_is_refused() {
    for (text, missing) in [
        ("00000001", 1),
        ("00000003 6161", 1),
        ("7fffffff 61", 0x7fff_fffe),
        ("0000", 2),
        ("", 4),
    ] {
        let wire = Bytes::from(hex(text));
        assert_eq!(
            Reader::new(&wire).buffer(),
            Err(DecodeError::Truncated { missing }),
            "{text}"
        );
    }
}

#[test]
fn reader_window_does_not_see_its_neighbours() {
    let wire = Bytes::from(hex("00000001 00000002 00000003"));
    let mut reader = Reader::window(&wire, 4..8);
    assert_eq!(reader.remaining(), 4);
    assert_eq!(reader.int(), Ok(2));
    assert_eq!(reader.bool(), Err(DecodeError::Truncated { missing: 1 }));
    assert_eq!(
        Reader::window(&wire, 4..8).buffer(),
        Err(DecodeError::Truncated { missing: 2 })
    );
}

#[test]
fn malformed_utf8_is_kept_and_shown_replaced() {
    let body = hex("00000003 2fc328");
    let Ok(Request::Sync { path: Some(path) }) = decode_request(OpCode::Sync, &body) else {
        panic!("sync keeps any bytes")
    };
    assert_eq!(path.as_bytes(), b"/\xc3(");
    assert_eq!(path.to_str_lossy(), "/\u{fffd}(");
}

#[test]
fn nulls_of_setwatches_are_refused_whichever_vector() {
    let vectors = [
        "data",
        "exist",
        "child",
        "persistent",
        "persistent_recursive",
    ];
    for (at, field) in vectors.into_iter().enumerate() {
        let mut body = hex("0000000000000005");
        for other in 0..vectors.len() {
            jute::put_int(&mut body, if other == at { -1 } else { 0 });
        }
        let refused = Err(DecodeError::Null { field });
        assert_eq!(decode_request(OpCode::SetWatches2, &body), refused);
        if at < 3 {
            assert_eq!(decode_request(OpCode::SetWatches, &body), refused);
        }
    }
}

// Access lists.

#[test]
fn null_acl_vector_is_distinct_from_empty_both_ways() {
    for (acl, count) in [
        (AclList::null(), "ffffffff"),
        (AclList::new(&[]), "00000000"),
    ] {
        let wire = format!("00000019 00000001 00000007 00000005 2f676f6c64 {count} 00000003");
        let request = Request::SetAcl {
            path: gold(),
            acl: acl.clone(),
            version: 3,
        };
        assert_request(&wire, 1, &request);
        assert_eq!(acl.is_null(), count == "ffffffff");
        assert!(acl.is_empty());
        assert_eq!(acl.entries().count(), 0);
    }
}

#[test]
fn acl_count_below_minus_one_reads_as_empty_list() {
    for count in ["fffffffe", "80000000"] {
        let wire = Bytes::from(hex(count));
        assert_eq!(
            AclList::decode(&mut Reader::new(&wire)),
            Ok(AclList::new(&[]))
        );
    }
}

#[test]
fn acl_entries_keep_nulls_unknown_bits_and_order() {
    let entries = [
        Acl {
            perms: Perms(-1),
            scheme: None,
            id: None,
        },
        Acl {
            perms: Perms(64),
            scheme: Some("x".into()),
            id: Some(Ustring::default()),
        },
    ];
    let wire = Bytes::from(hex(
        "00000002 ffffffff ffffffff ffffffff 00000040 00000001 78 00000000",
    ));
    let acl = AclList::decode(&mut Reader::new(&wire)).unwrap();
    assert_eq!(acl.entries().collect::<Vec<_>>(), entries);
    assert_eq!(acl, AclList::new(&entries));
    assert_eq!(acl.as_wire(), Some(&wire[..]));
    assert_eq!(acl.detached(), acl);
}

#[test]
fn acl_of_the_world_has_the_permissions_in_its_name() {
    for (acl, perms) in [
        (AclList::world_all(), Perms::ALL),
        (AclList::world_read(), Perms::READ),
    ] {
        let world = Acl {
            perms,
            scheme: Some("world".into()),
            id: Some("anyone".into()),
        };
        assert_eq!(acl, AclList::new(&[world]));
        assert!(!acl.is_empty());
    }
}

#[test]
fn acl_with_malformed_entry_is_refused() {
    for (text, error) in [
        ("00000001", DecodeError::Truncated { missing: 4 }),
        (
            "00000001 0000001f fffffffe",
            DecodeError::NegativeLength { length: -2 },
        ),
        (
            "7fffffff 0000001f ffffffff ffffffff",
            DecodeError::Truncated { missing: 4 },
        ),
    ] {
        let wire = Bytes::from(hex(text));
        assert_eq!(
            AclList::decode(&mut Reader::new(&wire)),
            Err(error),
            "{text}"
        );
    }
}

// Multi, section 13.

#[test]
fn multi_that_starts_with_the_end_is_empty_whatever_its_type() {
    for text in [
        "ffffffff 01 ffffffff",
        "00000001 01 00000000",
        "7fffffff 02 00000000",
    ] {
        assert_eq!(
            decode_request(OpCode::Multi, &hex(text)),
            Ok(Request::Multi(Vec::new()))
        );
        assert_eq!(
            decode_request(OpCode::MultiRead, &hex(text)),
            Ok(Request::MultiRead(Vec::new()))
        );
        assert_eq!(
            decode_reply(OpCode::Multi, &hex(text)),
            Ok(Reply::Multi(Vec::new()))
        );
    }
}

#[test]
fn multi_ignores_the_error_field_of_its_headers() {
    let body = hex("00000002 00 12345678 00000005 2f676f6c64 00000001 ffffffff 01 00000000");
    let delete = MultiOp::Delete {
        path: gold(),
        version: 1,
    };
    assert_eq!(
        decode_request(OpCode::Multi, &body),
        Ok(Request::Multi(vec![delete]))
    );
}

#[test]
fn multi_of_every_create_keeps_operation_and_flags() {
    // The server checks what a multi may not create: a null path, a null list, odd flags.
    let create = |op, ttl_ms| {
        MultiOp::Create(Create {
            op,
            path: None,
            data: None,
            acl: AclList::null(),
            flags: 99,
            ttl_ms,
        })
    };
    let record = "00 ffffffff ffffffff ffffffff ffffffff 00000063";
    let wire = format!(
        "00000001 {record} 0000000f {record} 00000013 {record}
        00000015 {record} 0000000000000fff ffffffff 01 ffffffff"
    );
    let ops = vec![
        create(CreateOp::Create, 0),
        create(CreateOp::Create2, 0),
        create(CreateOp::Container, 0),
        create(CreateOp::Ttl, 0xfff),
    ];
    let mut out = Vec::new();
    multi::encode_ops(&ops, &mut out);
    assert_eq!(out, hex(&wire));
    assert_eq!(multi::decode_ops(&mut Reader::new(&out.into())), Ok(ops));
}

#[test]
fn multi_without_end_marker_is_refused() {
    let delete = "00000002 00 ffffffff 00000005 2f676f6c64 00000001";
    for (text, missing) in [
        ("", 4),
        ("ffffffff", 1),
        ("ffffffff 01", 4),
        (delete, 4),
        (&delete[..delete.len() - 2], 1),
    ] {
        assert_eq!(
            decode_request(OpCode::Multi, &hex(text)),
            Err(DecodeError::Truncated { missing }),
            "{text}"
        );
    }
}

#[test]
fn multi_with_operation_of_the_other_kind_is_refused() {
    let header = |code: i32| {
        let mut body = Vec::new();
        jute::put_int(&mut body, code);
        body.extend([0; 80]);
        body
    };
    let writes = [1, 2, 5, 13, 15, 19, 21];
    let reads = [4, 8];
    for code in (-20..120).chain([i32::MIN, i32::MAX]) {
        let refused = DecodeError::MultiOp { op: code };
        let write = decode_request(OpCode::Multi, &header(code));
        let read = decode_request(OpCode::MultiRead, &header(code));
        assert_eq!(write == Err(refused), !writes.contains(&code), "{code}");
        // A multiRead of only writes is decoded, and refused when served:
        // `docs/zookeeper-protocol.md` section 13.4.
        let is_decoded = reads.contains(&code) || writes.contains(&code);
        assert_eq!(read == Err(refused), !is_decoded, "{code}");
    }
}

#[test]
fn multi_read_decodes_and_encodes_back() {
    let ops = vec![
        MultiReadOp::GetData {
            path: gold(),
            watch: true,
        },
        MultiReadOp::GetChildren {
            path: None,
            watch: false,
        },
    ];
    assert_request(
        "00000032 00000001 00000016 00000004 00 ffffffff 00000005 2f676f6c64 01
        00000008 00 ffffffff ffffffff 00 ffffffff 01 ffffffff",
        1,
        &Request::MultiRead(ops),
    );
}

#[test]
fn multi_result_of_unknown_operation_is_refused() {
    assert_eq!(
        decode_reply(OpCode::Multi, &hex("00000007 00 00000000")),
        Err(DecodeError::MultiOp { op: 7 })
    );
}

// Events, section 12.5.

#[test]
fn event_with_kind_no_server_sends_is_refused() {
    for code in [-1, 0, 5, 6, 7, i32::MAX] {
        let mut body = Vec::new();
        jute::put_int(&mut body, code);
        body.extend(hex("00000003 00000005 2f676f6c64"));
        let refused = DecodeError::Value {
            field: "event type",
            value: code.into(),
        };
        assert_eq!(
            WatcherEvent::decode(&mut Reader::new(&body.into())),
            Err(refused)
        );
    }
}

#[test]
fn event_without_path_is_refused() {
    let event = |text: &str| WatcherEvent::decode(&mut Reader::new(&hex(text).into()));
    assert_eq!(
        event("00000001 00000003 ffffffff"),
        Err(DecodeError::Null {
            field: "event path"
        })
    );
    assert_eq!(
        event("00000001 00000003"),
        Err(DecodeError::Truncated { missing: 4 })
    );
}

// Handshake, section 6.2.

#[test]
fn connect_request_cut_before_the_end_of_its_password_is_refused() {
    let whole = hex(&vectors::NEW_SESSION.client["0000002d".len()..]);
    let password_end = whole.len() - 1;
    for length in 0..password_end {
        let wire = Bytes::copy_from_slice(&whole[..length]);
        let result = ConnectRequest::decode(&mut Reader::new(&wire));
        assert!(
            matches!(result, Err(DecodeError::Truncated { .. })),
            "{length} bytes: {result:?}"
        );
    }
}

#[test]
fn connect_request_with_null_password_is_accepted() {
    assert_connect_request(
        "0000001d 00000000 ffffffffffffffff 00000000 0000000000000000 ffffffff 01",
        &ConnectRequest {
            last_zxid_seen: Zxid(-1),
            password: None,
            read_only: Some(true),
            ..ConnectRequest::new(0)
        },
    );
}

#[test]
fn ordinary_request_is_no_connect_request() {
    for exchange in vectors::ALL
        .iter()
        .filter(|exchange| !exchange.is_handshake)
    {
        let wire = message(exchange.client);
        let result = ConnectRequest::decode(&mut Reader::new(&wire));
        assert!(result.is_err(), "{}: {result:?}", exchange.name);
    }
}

// Frames, section 2.1.

#[test]
fn frame_length_at_the_limit_waits_and_above_is_refused() {
    let limit = frame::BYTES_MAX_DEFAULT;
    assert_eq!(frame::next(&hex("000fffff"), limit), Ok(None));
    assert_eq!(
        frame::next(&hex("00100000"), limit),
        Err(FrameError::TooLong {
            length: 0x10_0000,
            bytes_max: limit
        })
    );
    let mut whole = hex("000fffff");
    whole.resize(4 + limit, 0);
    assert_eq!(frame::next(&whole, limit), Ok(Some(4..4 + limit)));
}

#[test]
fn frame_length_below_zero_is_refused_without_waiting_for_more() {
    for (text, length) in [("ffffffff", -1), ("80000000", i32::MIN)] {
        let error = Err(FrameError::Negative { length });
        assert_eq!(frame::next(&hex(text), usize::MAX), error);
    }
}

#[test]
fn four_letter_word_taken_as_length_is_refused() {
    assert_eq!(
        frame::next(b"ruok", frame::BYTES_MAX_DEFAULT),
        Err(FrameError::TooLong {
            length: 0x7275_6f6b,
            bytes_max: frame::BYTES_MAX_DEFAULT
        })
    );
}

#[test]
fn frame_that_has_not_arrived_whole_is_none() {
    let whole = hex(vectors::PING.client);
    for length in 0..whole.len() {
        assert_eq!(
            frame::next(&whole[..length], 100),
            Ok(None),
            "{length} bytes"
        );
    }
    assert_eq!(frame::next(&whole, 100), Ok(Some(4..12)));
    assert_eq!(frame::next(&hex("00000000 ff"), 0), Ok(Some(4..4)));
}
