//! The codec: the cost of decoding a request and encoding a reply, without a socket.
//!
//! Requests are decoded as in the server: a batch of frames in one shared buffer, each read through
//! a window of it, so that paths and data are reference-counted slices.

use std::{hint::black_box, time::Duration};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use minikeeper_benches::mix;
use minikeeper_protocol::{
    AclList, Create, CreateMode, CreateOp, EventKind, MultiOp, OpCode, Reader, ReplyHeader,
    ReplyRef, Request, RequestHeader, Stat, Ustring, Xid, Zxid, event, frame,
};

/// Frames in a batch, as many as one read of a pipelining client brings.
const BATCH: usize = 16;

fn path(number: usize) -> Option<Ustring> {
    Some(format!("/services/printer/worker-{number:04}").into())
}

fn create(number: usize) -> Create {
    Create {
        op: CreateOp::Create2,
        path: path(number),
        data: Some(mix::data(100)),
        acl: AclList::world_all(),
        flags: CreateMode::EphemeralSequential.flags(),
        ttl_ms: 0,
    }
}

/// Like the release of a lock or the hand-over of leadership: check, set, create, delete.
fn multi(number: usize) -> Request {
    let (path, data) = (path(number), Some(mix::data(100)));
    Request::Multi(vec![
        MultiOp::Check {
            path: path.clone(),
            version: 3,
        },
        MultiOp::SetData {
            path: path.clone(),
            data,
            version: 3,
        },
        MultiOp::Create(create(number)),
        MultiOp::Delete { path, version: -1 },
    ])
}

fn batch(request: impl Fn(usize) -> Request) -> Bytes {
    let mut wire = Vec::new();
    for number in 0..BATCH {
        let xid = i32::try_from(number).expect("a batch is small");
        request(number).encode(Xid(xid), &mut wire);
    }
    wire.into()
}

/// Splits and decodes every frame of a batch; the decoded requests are dropped one by one.
fn decode_batch(batch: &Bytes) -> usize {
    let (mut at, mut decoded) = (0, 0);
    while let Some(body) = frame::next(&batch[at..], frame::BYTES_MAX_DEFAULT)
        .expect("the batch was encoded with right lengths")
    {
        let mut reader = Reader::window(batch, at + body.start..at + body.end);
        let header = RequestHeader::decode(&mut reader).expect("the header was encoded");
        let op = OpCode::try_from(header.op).expect("the operation is known");
        black_box(Request::decode(op, &mut reader).expect("the body was encoded"));
        at += body.end;
        decoded += 1;
    }
    decoded
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(BATCH as u64));
    let get = batch(|number| Request::GetData {
        path: path(number),
        watch: false,
    });
    let set = batch(|number| Request::SetData {
        path: path(number),
        data: Some(mix::data(100)),
        version: -1,
    });
    let create = batch(|number| Request::Create(create(number)));
    let multi = batch(multi);
    for (name, batch) in [
        ("getData", get),
        ("setData", set),
        ("create2", create),
        ("multi", multi),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert_eq!(decode_batch(black_box(&batch)), BATCH));
        });
    }
    group.finish();
}

fn encode_requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode_request");
    group.throughput(Throughput::Elements(1));
    let get = Request::GetData {
        path: path(1),
        watch: false,
    };
    for (name, request) in [
        ("getData", get),
        ("create2", Request::Create(create(1))),
        ("multi", multi(1)),
    ] {
        let mut out = Vec::new();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(&request).encode(Xid(7), &mut out);
            });
        });
    }
    group.finish();
}

fn encode_replies(criterion: &mut Criterion) {
    let header = ReplyHeader {
        xid: Xid(7),
        zxid: Zxid(0x1234),
        error: None,
    };
    let stat = Stat::default();
    let data = mix::data(100);
    let mut out = Vec::new();
    let mut group = criterion.benchmark_group("encode_reply");
    group.throughput(Throughput::Elements(1));
    group.bench_function("getData", |bencher| {
        bencher.iter(|| {
            out.clear();
            ReplyRef::Data(Some(black_box(&data)), black_box(&stat))
                .encode(header, &mut out, ReplyRef::BYTES_MAX)
                .expect("the reply is short");
        });
    });
    group.bench_function("setData", |bencher| {
        bencher.iter(|| {
            out.clear();
            ReplyRef::Stat(black_box(&stat))
                .encode(header, &mut out, ReplyRef::BYTES_MAX)
                .expect("the reply is short");
        });
    });
    for children in [10, 10_000] {
        let names: Vec<String> = (0..children).map(|n| format!("worker-{n:010}")).collect();
        group.throughput(Throughput::Elements(children));
        group.bench_function(format!("getChildren/{children}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let mut names = black_box(&names).iter().map(String::as_bytes);
                ReplyRef::Children(&mut names, None)
                    .encode(header, &mut out, ReplyRef::BYTES_MAX)
                    .expect("the reply is short");
            });
        });
    }
    group.throughput(Throughput::Elements(1));
    group.bench_function("event", |bencher| {
        bencher.iter(|| {
            out.clear();
            let path = black_box(b"/services/printer/worker-0001");
            event::encode(EventKind::DataChanged, path, Zxid(0x1234), &mut out);
        });
    });
    group.finish();
}

/// Short runs: these numbers are in the tens of nanoseconds and settle at once.
fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = codec;
    config = short();
    targets = decode, encode_requests, encode_replies
}
criterion_main!(codec);
