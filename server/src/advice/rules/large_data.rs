//! Data close to the limit of a message.

use minikeeper_protocol::OpCode;

use super::{AdviceRule, ClientStep, Finder, Scene};

pub(super) const RULE: AdviceRule = AdviceRule {
    name: "large-data",
    title: "data of 512 KiB or more in a request",
    why: "servers and clients close the connection at 1 MB (jute.maxbuffer), and replicas copy and log all of it",
    remedy: "store large data elsewhere, and a reference in the znode",
    occurrences_min: 1,
};

#[derive(Debug, Default)]
pub(super) struct LargeData;

impl Finder for LargeData {
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>) {
        let ClientStep::Request(request) = step else {
            return;
        };
        let (path, bytes) = (request.data_path, request.data_bytes);
        let is_write = request.is_create()
            || matches!(
                request.op,
                Some(OpCode::SetData | OpCode::Delete | OpCode::Multi)
            );
        if is_write && bytes >= DATA_BYTES_MIN {
            let text = format!("{bytes} bytes of data written to {path}");
            scene.report(path, bytes, 1, &[], text);
        }
    }
}

/// The length of large data: half of ZooKeeper's default `jute.maxbuffer`. Unit: bytes.
const DATA_BYTES_MIN: u64 = 512 << 10;

#[cfg(test)]
mod tests {
    use crate::advice::tests::{NOTHING, found};

    #[test]
    fn large_data_is_half_of_the_limit() {
        assert_eq!(found("1 create /a PERSISTENT 524288B"), ["large-data"]);
        assert_eq!(
            found("1 setData /a 900000B v3 -> BADVERSION"),
            ["large-data"]
        );
        assert_eq!(
            found("1 multi [setData /a 300000B, setData /b 300000B]"),
            ["large-data"]
        );
        assert_eq!(found("1 create /a PERSISTENT 524287B"), NOTHING);
        assert_eq!(found("1 setData /a 300000B\n1 setData /b 300000B"), NOTHING);
    }
}
