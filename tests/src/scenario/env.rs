//! The state of a running case that lines can refer to.

use std::collections::BTreeMap;

use bytes::Bytes;
use minikeeper_protocol::{SessionId, Zxid};

/// The zxids, marks and sessions that lines refer to.
#[derive(Debug, Default)]
pub(crate) struct Env {
    /// The newest zxid before the last line that was not an expectation.
    pub(crate) zxid: i64,
    pub(crate) marks: BTreeMap<String, i64>,
    /// By connection.
    pub(crate) sessions: BTreeMap<String, (SessionId, Bytes)>,
}

impl Env {
    /// Parses `zxid`, `zxid+2`, `zxid-2`, `$mark`, `$mark+2`, `none`, or a number.
    pub(crate) fn zxid(&self, text: &str, is_dry: bool) -> Result<Zxid, String> {
        let fault = || format!("invalid zxid {text}");
        if let Some(text) = text.strip_prefix('$') {
            let (mark, plus) = text.split_once('+').unwrap_or((text, "0"));
            let plus: u32 = plus.parse().map_err(|_| fault())?;
            return match self.marks.get(mark) {
                Some(zxid) => Ok(Zxid(*zxid + i64::from(plus))),
                None if is_dry => Ok(Zxid(0)),
                None => Err(fault()),
            };
        }
        if let Some(rest) = text.strip_prefix("zxid") {
            let by = match rest.split_at_checked(1) {
                Some(("+", plus)) => plus.parse::<u32>().map(i64::from).map_err(|_| fault())?,
                Some(("-", minus)) => -minus.parse::<u32>().map(i64::from).map_err(|_| fault())?,
                None => 0,
                Some(_) => return Err(fault()),
            };
            return Ok(Zxid(self.zxid + by));
        }
        match text {
            "none" => Ok(Zxid::NONE),
            _ => text.parse().map(Zxid).map_err(|_| fault()),
        }
    }
}
