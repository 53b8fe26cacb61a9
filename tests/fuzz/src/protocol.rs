//! Fuzz targets of the protocol: decoded messages survive encoding and decoding again.

use bytes::Bytes;
use minikeeper_protocol::{
    AclList, ConnectRequest, ConnectResponse, FrameError, OpCode, Reader, Reply, ReplyHeader,
    ReplyRef, Request, RequestHeader, Ustring, WatcherEvent, Xid, ZnodePath, event, frame, jute,
    path::{is_valid, name_of, parent_of},
};

/// Decodes a message to a server without its length prefix. A decoded message is equal after
/// encoding and decoding it again.
///
/// An unknown operation code is mapped to a known one, since most inputs would otherwise end here.
pub fn decode_request(data: &[u8]) {
    let wire = Bytes::copy_from_slice(data);

    if let Ok(connect) = ConnectRequest::decode(&mut Reader::new(&wire)) {
        let again = message(|out| connect.encode(out));
        assert_eq!(
            ConnectRequest::decode(&mut Reader::new(&again)),
            Ok(connect)
        );
    }

    let mut reader = Reader::new(&wire);
    let Ok(header) = RequestHeader::decode(&mut reader) else {
        assert!(data.len() < 8, "eight bytes are a header");
        return;
    };
    let op = OpCode::from_code(header.op).unwrap_or_else(|| {
        let at = header.op.unsigned_abs() as usize % OpCode::ALL.len();
        OpCode::ALL[at]
    });
    if let Ok(request) = Request::decode(op, &mut reader) {
        assert_eq!(request.op(), op);
        let again = message(|out| request.encode(header.xid, out));
        let mut reader = Reader::new(&again);
        assert_eq!(
            RequestHeader::decode(&mut reader),
            Ok(RequestHeader {
                xid: header.xid,
                op: op.code()
            })
        );
        assert_eq!(Request::decode(op, &mut reader), Ok(request));
        assert_eq!(reader.remaining(), 0, "no bytes are left after decoding");
    }
}

/// Decodes a message to a client without its length prefix: as a connect response, as the reply to
/// each operation, as an event and as an access list. A decoded message is equal after encoding and
/// decoding it again.
pub fn decode_reply(data: &[u8]) {
    let wire = Bytes::copy_from_slice(data);

    if let Ok(connect) = ConnectResponse::decode(&mut Reader::new(&wire)) {
        let again = message(|out| connect.encode(out));
        assert_eq!(
            ConnectResponse::decode(&mut Reader::new(&again)),
            Ok(connect)
        );
    }

    let mut reader = Reader::new(&wire);
    let Ok(header) = ReplyHeader::decode(&mut reader) else {
        assert!(
            data.len() < ReplyHeader::BYTES,
            "sixteen bytes are a header"
        );
        return;
    };
    let body = wire.slice(ReplyHeader::BYTES..);
    for &op in OpCode::ALL {
        let Ok(reply) = Reply::decode(op, &mut Reader::new(&body)) else {
            continue;
        };
        let again = message(|out| {
            let encoded = reply.encode(header, out, ReplyRef::BYTES_MAX);
            assert_eq!(encoded, Ok(()), "a decoded reply fits in the limit");
        });
        let mut reader = Reader::new(&again);
        assert_eq!(ReplyHeader::decode(&mut reader), Ok(header));
        assert_eq!(Reply::decode(op, &mut reader), Ok(reply), "{}", op.name());
        assert_eq!(reader.remaining(), 0, "no bytes are left after decoding");
    }

    if let Ok(event) = WatcherEvent::decode(&mut Reader::new(&body)) {
        let path = event.path.as_bytes();
        let again = message(|out| event::encode(event.kind, path, header.zxid, out));
        let mut reader = Reader::new(&again);
        let header = ReplyHeader::decode(&mut reader);
        assert_eq!(header.map(|header| header.xid), Ok(Xid::EVENT));
        assert_eq!(WatcherEvent::decode(&mut reader), Ok(event));
    }

    if let Ok(acl) = AclList::decode(&mut Reader::new(&body))
        && !acl.is_null()
    {
        let entries: Vec<_> = acl.entries().collect();
        assert_eq!(AclList::new(&entries), acl);
    }
}

/// Splits a stream of frames into messages. The result does not depend on the pieces in which it
/// arrives.
pub fn split_frames(data: &[u8]) {
    let whole = split(data, data.len().max(1));
    for piece in [1, 2, 3, 5, 1 + data.len() / 2] {
        assert_eq!(split(data, piece), whole, "pieces of {piece} bytes");
    }

    // The messages, framed again, are the beginning of the stream.
    let mut again = Vec::new();
    for message in &whole.messages {
        frame::put(&mut again, |out| out.extend_from_slice(message));
    }
    assert!(data.starts_with(&again));
    let rest = &data[again.len()..];
    match whole.fault {
        Some(FrameError::Negative { length }) => assert!(rest.starts_with(&length.to_be_bytes())),
        Some(FrameError::TooLong { length, bytes_max }) => assert!(length > bytes_max),
        // The rest is an incomplete frame.
        None => {
            if let Some(prefix) = rest.first_chunk::<4>() {
                let length = u32::from_be_bytes(*prefix) as usize;
                assert!(rest.len() < 4 + length && length <= STREAM_BYTES_MAX);
            }
        }
    }

    // The same bytes taken as messages of one length byte and a body: framed and split, they are
    // equal.
    let mut messages = Vec::new();
    let mut left = data;
    while let [length, rest @ ..] = left {
        let (message, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        messages.push(message.to_vec());
        left = rest;
    }
    let mut stream = Vec::new();
    for message in &messages {
        frame::put(&mut stream, |out| out.extend_from_slice(message));
    }
    let piece = 1 + data.first().map_or(0, |&byte| usize::from(byte));
    let fault = None;
    assert_eq!(split(&stream, piece), Split { messages, fault });
}

/// Parses a path. It is valid exactly if ZooKeeper accepts it, and is split and joined without
/// loss.
pub fn path(data: &[u8]) {
    let wire = Bytes::copy_from_slice(data);
    let result = ZnodePath::new(Ustring::from(wire));
    assert_eq!(result.is_ok(), is_valid(data));
    assert_eq!(result.is_ok(), zookeeper_accepts(data));

    let path = match result {
        Ok(path) => path,
        Err(error) => {
            assert!(error.at <= data.len());
            assert!(error.to_string().starts_with("path \""));
            // Invalid paths can be split too.
            if let Some(parent) = parent_of(data) {
                assert!(data.starts_with(parent) && data.ends_with(name_of(data)));
            }
            return;
        }
    };

    assert_eq!(path.as_str().as_bytes(), data);
    let mut out = Vec::new();
    jute::put_ustring(&mut out, Some(path.as_ustring()));
    let again = Reader::new(&out.into()).ustring();
    assert_eq!(again, Ok(Some(path.as_ustring().clone())));

    let components = path
        .as_str()
        .split('/')
        .filter(|name| !name.is_empty())
        .count();
    let mut at = path;
    for _ in 0..components {
        assert_eq!(at.name().as_bytes(), name_of(at.as_str().as_bytes()));
        let parent = at.parent().expect("only the root has no parent");
        assert_eq!(
            parent_of(at.as_str().as_bytes()),
            Some(parent.as_str().as_bytes())
        );
        assert_eq!(ZnodePath::new(parent.as_str()), Ok(parent.clone()));
        assert_eq!(parent.join(at.name()), Ok(at));
        at = parent;
    }
    assert_eq!(at, ZnodePath::root());
    assert_eq!(at.parent(), None);
}

/// The limit on messages in [`split_frames`], short enough that inputs reach both sides of it.
const STREAM_BYTES_MAX: usize = 1000;

#[derive(PartialEq, Eq, Debug)]
struct Split {
    messages: Vec<Vec<u8>>,
    fault: Option<FrameError>,
}

/// Receives a stream in pieces, as a connection does, until its end or an invalid length.
fn split(stream: &[u8], piece: usize) -> Split {
    let mut messages = Vec::new();
    let mut buffer = Vec::new();
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match frame::next(&buffer, STREAM_BYTES_MAX) {
                Ok(Some(body)) => {
                    let end = body.end;
                    messages.push(buffer[body].to_vec());
                    buffer.drain(..end);
                }
                Ok(None) => break,
                Err(error) => {
                    let fault = Some(error);
                    return Split { messages, fault };
                }
            }
        }
    }
    let fault = None;
    Split { messages, fault }
}

/// Returns the message of the single frame that `write` appends.
fn message(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::new();
    write(&mut out);
    let body = frame::next(&out, usize::MAX).expect("an encoded frame has a valid length");
    assert_eq!(body, Some(frame::PREFIX_BYTES..out.len()));
    Bytes::from(out).slice(frame::PREFIX_BYTES..)
}

/// Returns whether ZooKeeper accepts a path. Its rules are on UTF-16 units, after replacing
/// malformed input.
///
/// Source: `PathUtils.validatePath`; `docs/zookeeper-protocol.md` sections 2.2 and 8.1.
fn zookeeper_accepts(path: &[u8]) -> bool {
    const SLASH: u16 = b'/' as u16;
    const DOT: u16 = b'.' as u16;
    let units: Vec<u16> = String::from_utf8_lossy(path).encode_utf16().collect();
    if units == [SLASH] {
        return true;
    }
    if units.first() != Some(&SLASH) || units.last() == Some(&SLASH) {
        return false;
    }
    (1..units.len()).all(|at| {
        let ends_component = at + 1 == units.len() || units[at + 1] == SLASH;
        match (units[at - 1], units[at]) {
            (SLASH, SLASH) => false,
            (SLASH, DOT) if ends_component => false,
            (DOT, DOT) if units[at - 2] == SLASH && ends_component => false,
            (_, 0..=0x1f | 0x7f..=0x9f | 0xd800..=0xf8ff | 0xfff0..=0xffff) => false,
            _ => true,
        }
    })
}
