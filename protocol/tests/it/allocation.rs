//! No bytes make a decoder panic, or allocate more than in proportion to the received bytes.
//!
//! The tests count all memory allocated while decoding, even if it is freed again, so that they
//! notice a vector allocated by a claimed length even if the decoder fails afterwards.

use allocation_counter::measure;
use bytes::Bytes;
use minikeeper_protocol::{
    AclList, ConnectRequest, ConnectResponse, DecodeError, MultiReadResults, OpCode, Reader, Reply,
    ReplyHeader, ReplyRef, Request, RequestHeader, Stat, WatcherEvent, Xid, ZnodePath, Zxid, event,
    frame, jute, multi, path,
};
use minikeeper_test_kit::property::check;
use proptest::{collection::vec, prelude::*, sample::Index};

use crate::strategies;

/// The maximum number of allocated bytes per byte of input.
///
/// The worst case is the results of a multi: the nine bytes of a delete become a
/// [`minikeeper_protocol::MultiResult`], and a growing vector allocates up to four times its final
/// size.
const PER_BYTE: usize = 4 * size_of::<minikeeper_protocol::MultiResult>() / 9 + 1;

/// The maximum number of allocated bytes in addition: the first elements of a vector.
const CONSTANT: usize = 4 * size_of::<minikeeper_protocol::MultiOp>();

const CASES: u32 = 1_200;

#[test]
fn arbitrary_bytes_decode_within_bounds() {
    check(CASES, &vec(any::<u8>(), 0..200), |bytes| {
        decode_all(bytes.into())
    });
}

#[test]
fn bytes_that_look_like_lengths_decode_within_bounds() {
    let int = proptest::sample::select(vec![
        i32::MIN,
        -2,
        -1,
        0,
        1,
        2,
        4,
        5,
        8,
        14,
        64,
        0xfffff,
        0x7fff_fffe,
        i32::MAX,
    ]);
    let piece = prop_oneof![
        3 => int.prop_map(|int| int.to_be_bytes().to_vec()),
        1 => vec(0..3_u8, 1..4),
    ];
    check(CASES, &vec(piece, 0..30), |pieces| {
        decode_all(pieces.concat().into())
    });
}

#[test]
fn mutated_requests_decode_within_bounds() {
    for &op in OpCode::ALL {
        check(
            CASES / 20,
            &(strategies::request(op), changes()),
            |(request, changes)| {
                let mut out = Vec::new();
                request.encode(Xid(1), &mut out);
                decode_all(mutated(out[12..].to_vec(), &changes))
            },
        );
    }
}

#[test]
fn mutated_replies_decode_within_bounds() {
    for &op in OpCode::ALL {
        let Some(reply) = strategies::reply(op) else {
            continue;
        };
        let strategy = (strategies::reply_header(), reply, changes());
        check(CASES / 20, &strategy, |(header, reply, changes)| {
            let mut out = Vec::new();
            reply.encode(header, &mut out, ReplyRef::BYTES_MAX).unwrap();
            decode_all(mutated(out[4 + ReplyHeader::BYTES..].to_vec(), &changes))
        });
    }
}

#[test]
fn mutated_handshakes_and_events_decode_within_bounds() {
    let strategy = (
        strategies::connect_request(),
        strategies::connect_response(),
        strategies::event(),
        changes(),
    );
    check(
        CASES / 4,
        &strategy,
        |(request, response, (event, zxid), changes)| {
            for write in [
                &|out: &mut Vec<u8>| request.encode(out) as () as _,
                &|out: &mut Vec<u8>| response.encode(out),
                &|out: &mut Vec<u8>| event::encode(event.kind, event.path.as_bytes(), zxid, out),
            ] as [&dyn Fn(&mut Vec<u8>); 3]
            {
                let mut out = Vec::new();
                write(&mut out);
                decode_all(mutated(out[4..].to_vec(), &changes))?;
            }
            Ok(())
        },
    );
}

#[test]
fn absurd_vector_count_fails_without_allocating_for_it() {
    let truncated =
        |result: Result<(), DecodeError>| matches!(result, Err(DecodeError::Truncated { .. }));
    let request = |op: OpCode| move |reader: &mut Reader<'_>| Request::decode(op, reader).map(drop);
    let reply = |op: OpCode| move |reader: &mut Reader<'_>| Reply::decode(op, reader).map(drop);
    // The fields before the count, then the decoder.
    let decoders: [(&str, &[u8], Box<Decoder>); 12] = [
        ("setWatches", &[0; 8], Box::new(request(OpCode::SetWatches))),
        (
            "setWatches, last",
            &[0; 16],
            Box::new(request(OpCode::SetWatches)),
        ),
        (
            "setWatches2",
            &[0; 8],
            Box::new(request(OpCode::SetWatches2)),
        ),
        (
            "setWatches2, last",
            &[0; 24],
            Box::new(request(OpCode::SetWatches2)),
        ),
        ("setACL", &[0; 4], Box::new(request(OpCode::SetAcl))),
        ("create", &[0; 8], Box::new(request(OpCode::Create))),
        (
            "create in a multi",
            &MULTI_CREATE,
            Box::new(request(OpCode::Multi)),
        ),
        ("getChildren", &[], Box::new(reply(OpCode::GetChildren))),
        ("getChildren2", &[], Box::new(reply(OpCode::GetChildren2))),
        (
            "getChildren in a multiRead",
            &MULTI_NAMES,
            Box::new(reply(OpCode::MultiRead)),
        ),
        ("getEphemerals", &[], Box::new(reply(OpCode::GetEphemerals))),
        ("whoAmI", &[], Box::new(reply(OpCode::WhoAmI))),
    ];
    for (name, front, decode) in decoders {
        for count in [0x7fff_ffff, 0x7fff_fffe, 0x1000_0000, 100_000] {
            for rest in [0, 1, 3, 4, 8, 15] {
                let mut input = front.to_vec();
                jute::put_int(&mut input, count);
                input.resize(input.len() + rest, 0);
                let wire = Bytes::from(input);
                let _shared = wire.clone();
                let mut result = Ok(());
                let allocated = measure(|| result = decode(&mut Reader::new(&wire))).bytes_total;
                assert!(truncated(result), "{name}, count {count}: {result:?}");
                assert!(
                    allocated <= as_u64(CONSTANT),
                    "{name}, count {count}: {allocated} bytes for {}",
                    wire.len()
                );
            }
        }
    }
    let wire = Bytes::from(i32::MAX.to_be_bytes().to_vec());
    let mut result = Ok(());
    let info = measure(|| result = AclList::decode(&mut Reader::new(&wire)).map(drop));
    assert!(truncated(result));
    assert!(info.bytes_total <= as_u64(CONSTANT), "{info:?}");
}

#[test]
fn absurd_length_fails_without_allocating_at_all() {
    for length in [0x7fff_ffff, 0x7fff_fffe, 100_000, -2, i32::MIN] {
        let wire = Bytes::from(length.to_be_bytes().to_vec());
        let mut is_refused = false;
        let info = measure(|| is_refused = Reader::new(&wire).buffer().is_err());
        assert!(is_refused, "length {length}");
        assert_eq!(info.bytes_total, 0, "length {length}");
    }
}

#[test]
fn longest_messages_of_smallest_elements_decode_within_bounds() {
    let bytes = frame::BYTES_MAX_DEFAULT;
    let deletes = [0, 0, 0, 2, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0];
    let mut multi = deletes.repeat(bytes / deletes.len());
    multi.extend([255, 255, 255, 255, 1, 0, 0, 0, 0]);
    within_bounds("multi", &multi.into(), |reader| {
        multi::decode_ops(reader).map(drop)
    })
    .unwrap();

    let mut results = [0, 0, 0, 2, 0, 0, 0, 0, 0].repeat(bytes / 9);
    results.extend([255, 255, 255, 255, 1, 0, 0, 0, 0]);
    let decode = |reader: &mut Reader<'_>| multi::decode_results(reader).map(drop);
    within_bounds("multi results", &results.into(), decode).unwrap();

    for size in [4, 8] {
        let count = bytes / size;
        let mut vector = Vec::new();
        jute::put_length(&mut vector, count);
        vector.resize(4 + count * size, 0);
        decode_all(vector.into()).unwrap();
    }
}

/// A reply with the same megabyte 2,200 times was built whole before its length turned out not to
/// fit into the frame.
#[test]
fn reply_beyond_its_limit_is_not_copied() {
    const BYTES_MAX: usize = 1 << 20;
    let (data, stat) = (vec![7; 400_000], Stat::default());
    let results = |results: &mut MultiReadResults<'_, '_>| {
        for _ in 0..2_200 {
            results.data(Some(&data), &stat);
        }
    };
    let header = ReplyHeader {
        xid: Xid(1),
        zxid: Zxid(1),
        error: None,
    };
    let mut names = (0..100_000).map(|_| &data[..100]);
    for body in [
        ReplyRef::MultiRead(&results),
        ReplyRef::Children(&mut names, None),
        ReplyRef::Data(Some(&vec![7; BYTES_MAX]), &stat),
    ] {
        let name = format!("{body:?}");
        let mut out = Vec::new();
        let mut encoded = Ok(());
        let info = measure(|| encoded = body.encode(header, &mut out, BYTES_MAX));
        assert!(encoded.is_err() && out.is_empty(), "{name}");
        // A vector doubles, and has both allocations while it moves.
        assert!(info.bytes_max <= as_u64(3 * BYTES_MAX), "{name}: {info:?}");
    }
}

#[test]
fn data_is_shared_with_the_message_and_not_copied() {
    let request = Request::SetData {
        path: Some("/a".into()),
        data: Some(vec![7; 1_000_000].into()),
        version: 0,
    };
    let mut out = Vec::new();
    request.encode(Xid(1), &mut out);
    let wire = Bytes::from(out);
    let _shared = wire.clone();
    let mut decoded = None;
    let info = measure(|| {
        decoded = Request::decode(OpCode::SetData, &mut Reader::window(&wire, 12..wire.len())).ok();
    });
    assert_eq!(decoded, Some(request));
    assert_eq!(info.bytes_total, 0, "{info:?}");
}

type Decoder = dyn Fn(&mut Reader<'_>) -> Result<(), DecodeError>;

/// A multi up to the access list of its one create.
const MULTI_CREATE: [u8; 17] = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The results of a multiRead up to the names of its one getChildren.
const MULTI_NAMES: [u8; 9] = [0, 0, 0, 8, 0, 0, 0, 0, 0];

/// Yields changes to a message: the kind of change, its position, and a number.
fn changes() -> impl Strategy<Value = Vec<(u8, Index, i32)>> {
    let int = prop_oneof![Just(i32::MAX), Just(i32::MIN), -3..70_i32, any::<i32>()];
    vec((0..4_u8, any::<Index>(), int), 1..5)
}

fn mutated(mut message: Vec<u8>, changes: &[(u8, Index, i32)]) -> Bytes {
    for (kind, at, int) in changes {
        let at = at.index(message.len() + 1);
        let int = int.to_be_bytes();
        match kind {
            0 => message.truncate(at),
            1 => drop(message.splice(at..at, int)),
            2 => drop(message.splice(at..message.len().min(at + 4), int)),
            _ => message[at..]
                .iter_mut()
                .take(1)
                .for_each(|byte| *byte ^= int[3]),
        }
    }
    message.into()
}

/// Decodes the bytes with every decoder.
fn decode_all(wire: Bytes) -> Result<(), TestCaseError> {
    for &op in OpCode::ALL {
        within_bounds(op.name(), &wire, |reader| {
            Request::decode(op, reader).map(drop)
        })?;
        within_bounds(op.name(), &wire, |reader| {
            Reply::decode(op, reader).map(drop)
        })?;
    }
    within_bounds("connect", &wire, |reader| {
        ConnectRequest::decode(reader).map(drop)
    })?;
    within_bounds("connected", &wire, |reader| {
        ConnectResponse::decode(reader).map(drop)
    })?;
    within_bounds("request header", &wire, |reader| {
        RequestHeader::decode(reader).map(drop)
    })?;
    within_bounds("reply header", &wire, |reader| {
        ReplyHeader::decode(reader).map(drop)
    })?;
    within_bounds("event", &wire, |reader| {
        WatcherEvent::decode(reader).map(drop)
    })?;
    within_bounds("stat", &wire, |reader| Stat::decode(reader).map(drop))?;
    within_bounds("acl", &wire, |reader| {
        let acl = AclList::decode(reader)?;
        assert_eq!(acl.is_empty(), acl.entries().count() == 0);
        Ok(())
    })?;
    within_bounds("path", &wire, |_| {
        if let Err(error) = path::validate(&wire) {
            assert!(error.at <= wire.len());
        }
        let _ = ZnodePath::new(minikeeper_protocol::Ustring::from(wire.clone()));
        Ok(())
    })?;

    let info = measure(|| drop(frame::next(&wire, frame::BYTES_MAX_DEFAULT)));
    prop_assert_eq!(info.bytes_total, 0, "looking for a frame allocates");
    Ok(())
}

fn within_bounds(
    name: &str,
    wire: &Bytes,
    decode: impl Fn(&mut Reader<'_>) -> Result<(), DecodeError>,
) -> Result<(), TestCaseError> {
    // The first slice of a buffer allocates the reference count that all of them share.
    let _shared = wire.clone();
    let mut result = Ok(());
    let info = measure(|| result = decode(&mut Reader::new(wire)));
    prop_assert!(
        info.bytes_total <= as_u64(PER_BYTE * wire.len() + CONSTANT),
        "{} allocates {} bytes for {}: {:?}",
        name,
        info.bytes_total,
        wire.len(),
        result
    );
    prop_assert_eq!(info.bytes_current, 0, "{} keeps memory", name);
    Ok(())
}

fn as_u64(size: usize) -> u64 {
    u64::try_from(size).expect("a size fits 64 bits")
}
