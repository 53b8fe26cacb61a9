//! Every encoded value decodes to the same value, from exactly the bytes that were written.

use std::mem::discriminant;

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, ConnectRequest, ConnectResponse, CreateOp, DecodeError, MultiOp, MultiResult, OpCode,
    Reader, Reply, ReplyHeader, ReplyRef, ReplyTooLong, Request, RequestHeader, Stat, WatcherEvent,
    Xid, Zxid, event, frame, jute, multi,
};
use minikeeper_test_kit::property::check;
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::strategies;

const HEADER: ReplyHeader = ReplyHeader {
    xid: Xid(1),
    zxid: Zxid(2),
    error: None,
};

/// The number of cases for each of the thirty operations.
const CASES: u32 = 80;

#[test]
fn request_of_every_operation_survives_the_wire() {
    for &op in OpCode::ALL {
        check(
            CASES,
            &(strategies::xid(), strategies::request(op)),
            |(xid, request)| {
                prop_assert_eq!(
                    request.op(),
                    op,
                    "the strategy of {} yields another",
                    op.name()
                );
                let message = framed(|out| request.encode(xid, out))?;
                let mut reader = Reader::new(&message);
                let header = RequestHeader { xid, op: op.code() };
                prop_assert_eq!(RequestHeader::decode(&mut reader), Ok(header));
                prop_assert_eq!(Request::decode(op, &mut reader), Ok(request));
                prop_assert_eq!(reader.remaining(), 0);
                Ok(())
            },
        );
    }
}

#[test]
fn request_cut_anywhere_is_refused() {
    for &op in OpCode::ALL {
        check(CASES / 4, &strategies::request(op), |request| {
            let body = framed(|out| request.encode(Xid(1), out))?.slice(8..);
            for length in 0..body.len() {
                let result = Request::decode(op, &mut Reader::window(&body, 0..length));
                prop_assert!(
                    matches!(result, Err(DecodeError::Truncated { .. })),
                    "{} of {} bytes: {:?}",
                    length,
                    body.len(),
                    result
                );
            }
            Ok(())
        });
    }
}

#[test]
fn reply_to_every_operation_survives_the_wire() {
    for &op in OpCode::ALL {
        let Some(reply) = strategies::reply(op) else {
            continue;
        };
        check(
            CASES,
            &(strategies::reply_header(), reply),
            |(header, reply)| {
                let message =
                    framed(|out| reply.encode(header, out, ReplyRef::BYTES_MAX).unwrap())?;
                let mut reader = Reader::new(&message);
                prop_assert_eq!(ReplyHeader::decode(&mut reader), Ok(header));
                prop_assert_eq!(Reply::decode(op, &mut reader), Ok(reply));
                prop_assert_eq!(reader.remaining(), 0);
                Ok(())
            },
        );
    }
}

/// The limit applies to the message without its prefix, to the byte; beyond it nothing is appended.
#[test]
fn reply_to_every_operation_is_encoded_within_its_limit_or_not_at_all() {
    for &op in OpCode::ALL {
        let Some(reply) = strategies::reply(op) else {
            continue;
        };
        check(
            CASES / 4,
            &(strategies::reply_header(), reply),
            |(header, reply)| {
                let mut whole = Vec::new();
                reply.encode(header, &mut whole, usize::MAX).unwrap();
                let length = whole.len() - frame::PREFIX_BYTES;
                let mut out = b"before".to_vec();
                prop_assert_eq!(reply.encode(header, &mut out, length), Ok(()));
                prop_assert_eq!(&out[6..], &whole[..]);
                if length > ReplyHeader::BYTES {
                    out.truncate(6);
                    for bytes_max in [0, ReplyHeader::BYTES, length - 1] {
                        let error = ReplyTooLong { bytes_max };
                        prop_assert_eq!(reply.encode(header, &mut out, bytes_max), Err(error));
                        prop_assert_eq!(&out, b"before");
                    }
                }
                Ok(())
            },
        );
    }
}

#[test]
fn reply_cut_anywhere_is_refused() {
    for &op in OpCode::ALL {
        let Some(reply) = strategies::reply(op) else {
            continue;
        };
        check(
            CASES / 4,
            &(strategies::reply_header(), reply),
            |(header, reply)| {
                let body = framed(|out| reply.encode(header, out, ReplyRef::BYTES_MAX).unwrap())?
                    .slice(ReplyHeader::BYTES..);
                for length in 0..body.len() {
                    let result = Reply::decode(op, &mut Reader::window(&body, 0..length));
                    prop_assert!(
                        matches!(result, Err(DecodeError::Truncated { .. })),
                        "{} of {} bytes: {:?}",
                        length,
                        body.len(),
                        result
                    );
                }
                Ok(())
            },
        );
    }
}

#[test]
fn replies_of_operations_without_one_are_refused() {
    for &op in OpCode::ALL {
        // Zeros decode as every body (numbers, empty strings and vectors) except the results of a
        // multi, whose end marker has a non-zero byte after the type.
        let mut body = vec![0; 128];
        body[4] = 1;
        let result = Reply::decode(op, &mut Reader::new(&body.into()));
        let is_refused = matches!(result, Err(DecodeError::Value { .. }));
        assert_eq!(
            strategies::reply(op).is_none(),
            is_refused,
            "{}: {result:?}",
            op.name()
        );
    }
}

#[test]
fn strategies_reach_every_variant_of_the_enums() {
    let mut runner = TestRunner::deterministic();
    let mut requests = Vec::new();
    let mut replies = Vec::new();
    for &op in OpCode::ALL {
        let request = strategies::request(op).new_tree(&mut runner).unwrap();
        requests.push(discriminant(&request.current()));
        if let Some(reply) = strategies::reply(op) {
            replies.push(discriminant(
                &reply.new_tree(&mut runner).unwrap().current(),
            ));
        }
    }
    let mut results = Vec::new();
    for _ in 0..200 {
        let tree = strategies::multi_results().new_tree(&mut runner).unwrap();
        results.extend(tree.current().iter().map(discriminant));
    }
    // Four create operations share a variant of Request.
    assert_eq!(distinct(requests), OpCode::ALL.len() - 3);
    assert_eq!(distinct(replies), 14);
    assert_eq!(distinct(results), 8);
}

#[test]
fn multi_operation_of_every_code_survives_the_wire_or_is_refused() {
    for &op in OpCode::ALL {
        let Some(strategy) = strategies::multi_op(op) else {
            let mut body = Vec::new();
            jute::put_int(&mut body, op.code());
            body.resize(128, 0);
            let refused = Err(DecodeError::MultiOp { op: op.code() });
            assert_eq!(multi::decode_ops(&mut Reader::new(&body.into())), refused);
            continue;
        };
        check(CASES, &strategy, |multi_op: MultiOp| {
            prop_assert_eq!(multi_op.op(), op);
            let ops = vec![multi_op];
            let mut out = Vec::new();
            multi::encode_ops(&ops, &mut out);
            let wire = Bytes::from(out);
            let mut reader = Reader::new(&wire);
            prop_assert_eq!(multi::decode_ops(&mut reader), Ok(ops));
            prop_assert_eq!(reader.remaining(), 0);
            Ok(())
        });
    }
}

#[test]
fn multi_results_survive_the_wire() {
    check(
        CASES * 8,
        &strategies::multi_results(),
        |results: Vec<MultiResult>| {
            let mut out = Vec::new();
            ReplyRef::Multi(&results)
                .encode(HEADER, &mut out, ReplyRef::BYTES_MAX)
                .unwrap();
            let wire = Bytes::from(out.split_off(frame::PREFIX_BYTES + ReplyHeader::BYTES));
            let mut reader = Reader::new(&wire);
            prop_assert_eq!(multi::decode_results(&mut reader), Ok(results));
            prop_assert_eq!(reader.remaining(), 0);
            Ok(())
        },
    );
}

#[test]
fn connect_request_survives_the_wire() {
    check(CASES * 8, &strategies::connect_request(), |request| {
        let message = framed(|out| request.encode(out))?;
        let mut reader = Reader::new(&message);
        prop_assert_eq!(ConnectRequest::decode(&mut reader), Ok(request));
        prop_assert_eq!(reader.remaining(), 0);
        Ok(())
    });
}

#[test]
fn connect_response_survives_the_wire() {
    check(CASES * 8, &strategies::connect_response(), |response| {
        let message = framed(|out| response.encode(out))?;
        let mut reader = Reader::new(&message);
        prop_assert_eq!(ConnectResponse::decode(&mut reader), Ok(response));
        prop_assert_eq!(reader.remaining(), 0);
        Ok(())
    });
}

#[test]
fn event_survives_the_wire() {
    check(CASES * 8, &strategies::event(), |(event, zxid)| {
        let message = framed(|out| event::encode(event.kind, event.path.as_bytes(), zxid, out))?;
        let mut reader = Reader::new(&message);
        let header = ReplyHeader {
            xid: Xid::EVENT,
            zxid,
            error: None,
        };
        prop_assert_eq!(ReplyHeader::decode(&mut reader), Ok(header));
        prop_assert_eq!(WatcherEvent::decode(&mut reader), Ok(event));
        prop_assert_eq!(reader.remaining(), 0);
        Ok(())
    });
}

#[test]
fn stat_survives_the_wire() {
    check(CASES * 8, &strategies::stat(), |stat| {
        let mut out = Vec::new();
        stat.encode(&mut out);
        prop_assert_eq!(out.len(), Stat::BYTES);
        prop_assert_eq!(Stat::decode(&mut Reader::new(&out.into())), Ok(stat));
        Ok(())
    });
}

#[test]
fn acl_list_survives_the_wire_and_keeps_its_entries() {
    check(CASES * 8, &strategies::acl_list(), |acl| {
        let mut out = Vec::new();
        acl.encode(&mut out);
        let wire = Bytes::from(out);
        let mut reader = Reader::new(&wire);
        let decoded = AclList::decode(&mut reader).unwrap();
        prop_assert_eq!(reader.remaining(), 0);
        prop_assert_eq!(&decoded, &acl);
        prop_assert_eq!(decoded.is_empty(), decoded.entries().count() == 0);
        if !acl.is_null() {
            let entries: Vec<_> = decoded.entries().collect();
            prop_assert_eq!(AclList::new(&entries), acl);
        }
        Ok(())
    });
}

#[test]
fn acl_list_in_the_middle_of_a_buffer_takes_only_its_own_bytes() {
    check(
        CASES * 4,
        &(strategies::acl_list(), strategies::bytes()),
        |(acl, around)| {
            let mut out = around.to_vec();
            acl.encode(&mut out);
            let end = out.len();
            out.extend_from_slice(&around);
            let wire = Bytes::from(out);
            let mut reader = Reader::window(&wire, around.len()..wire.len());
            prop_assert_eq!(AclList::decode(&mut reader), Ok(acl));
            prop_assert_eq!(reader.remaining(), wire.len() - end);
            Ok(())
        },
    );
}

#[test]
fn ttl_is_written_only_by_create_ttl() {
    let strategy = (strategies::request(OpCode::CreateTtl), any::<i64>());
    check(CASES, &strategy, |(request, ttl_ms)| {
        let Request::Create(mut create) = request else {
            return Err(TestCaseError::fail("createTTL is a create"));
        };
        create.ttl_ms = ttl_ms;
        let with = framed(|out| Request::Create(create.clone()).encode(Xid(1), out))?;
        create.op = CreateOp::Create2;
        let without = framed(|out| Request::Create(create).encode(Xid(1), out))?;
        prop_assert_eq!(&with[8..without.len()], &without[8..]);
        prop_assert_eq!(&with[without.len()..], ttl_ms.to_be_bytes());
        Ok(())
    });
}

/// Returns the message in the single frame that `write` appends after other bytes.
fn framed(write: impl FnOnce(&mut Vec<u8>)) -> Result<Bytes, TestCaseError> {
    let mut out = b"before".to_vec();
    write(&mut out);
    prop_assert_eq!(&out[..6], b"before");
    let wire = Bytes::from(out).slice(6..);
    let body =
        frame::next(&wire, frame::BYTES_MAX_DEFAULT).expect("a frame that was put has a length");
    prop_assert_eq!(body.clone(), Some(frame::PREFIX_BYTES..wire.len()));
    Ok(wire.slice(frame::PREFIX_BYTES..))
}

fn distinct<T: std::hash::Hash + Eq>(items: Vec<T>) -> usize {
    items
        .into_iter()
        .collect::<std::collections::HashSet<_>>()
        .len()
}
