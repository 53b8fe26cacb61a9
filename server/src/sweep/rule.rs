//! What a test says of points: which failures it expects, and which points are not to be tried.

use std::{fmt, str::FromStr};

use minikeeper_core::glob::Glob;

use crate::{
    orders::fault::SweepFault,
    sweep::{SweepError, point::FaultPoint},
};

/// The longest rule. Unit: bytes.
const RULE_BYTES_MAX: usize = 4_096;

/// The maximum number of rules of one kind.
const RULES_MAX: usize = 1_000;

/// What a test says of some points, with the reason.
///
/// Its text is `WHERE because REASON`, or `WHERE raises TEXT because REASON`. WHERE names a fault, such as
/// `session-expired`, or a point, such as `session-expired:1:create:*:/jobs/*`, whose parts may be `*`. In
/// its path `*` stands for any characters of a name.
///
/// # Examples
/// ```
/// use minikeeper::SweepRule;
/// let text = "session-expired:*:create raises SessionExpired because the caller asks again";
/// let rule: SweepRule = text.parse()?;
/// assert_eq!(rule.reason, "the caller asks again");
/// assert_eq!(rule.raises.as_deref(), Some("SessionExpired"));
/// # Ok::<(), minikeeper::SweepError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SweepRule {
    /// The part of its text that names the points.
    pub at: String,
    /// What the message of an expected failure contains; `None` for any failure.
    pub raises: Option<String>,
    /// Why.
    pub reason: String,
    fault: SweepFault,
    client: Option<u32>,
    op: Option<String>,
    nth: Option<u64>,
    path: Option<Glob>,
}

impl FromStr for SweepRule {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let wrong = |why: &str| {
            let mut shown: String = text.chars().take(200).collect();
            shown.retain(|letter| !letter.is_control());
            SweepError(format!(
                "rule {shown:?}: {why}; a rule is WHERE because REASON, or WHERE raises TEXT because REASON, and WHERE a fault or \
                 FAULT:CLIENT:OPERATION:ORDINAL:PATH, such as session-expired:*:create:*:/jobs/*"
            ))
        };
        if text.len() > RULE_BYTES_MAX {
            return Err(wrong(&format!("longer than {RULE_BYTES_MAX} bytes")));
        }
        let (what, reason) = text
            .rsplit_once(" because ")
            .ok_or_else(|| wrong("no reason"))?;
        let (at, raises) = match what.split_once(" raises ") {
            Some((at, raises)) => (at.trim(), Some(raises.trim().to_owned())),
            None => (what.trim(), None),
        };
        if reason.trim().is_empty() {
            return Err(wrong("no reason"));
        }
        let mut parts = at.splitn(5, ':');
        let fault = parts.next().unwrap_or_default();
        let fault: SweepFault = fault.parse().map_err(|error: SweepError| wrong(&error.0))?;
        let mut part = || parts.next().filter(|part| !matches!(*part, "*" | ""));
        let (client, op, nth, path) = (part(), part(), part(), part());
        let client = client.map(str::parse).transpose();
        let nth = nth.map(str::parse).transpose();
        let path = path.map(Glob::new).transpose();
        Ok(Self {
            at: at.to_owned(),
            raises,
            reason: reason.trim().to_owned(),
            fault,
            client: client.map_err(|_| wrong("the client is no number"))?,
            op: op.map(str::to_owned),
            nth: nth.map_err(|_| wrong("the ordinal is no number"))?,
            path: path.map_err(|why| wrong(&format!("the path {why}")))?,
        })
    }
}

impl SweepRule {
    /// Returns the rules of a text, one a line.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>, SweepError> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let rules: Vec<Self> = lines.map(str::parse).collect::<Result<_, _>>()?;
        if rules.len() > RULES_MAX {
            return Err(SweepError(format!(
                "{} rules, more than the limit of {RULES_MAX}",
                rules.len()
            )));
        }
        Ok(rules)
    }

    /// Returns whether it is about a point.
    pub(crate) fn is_about(&self, point: &FaultPoint) -> bool {
        let is_in_path = |path: &Glob| {
            // The `*` of a point stands for a name, too.
            path.matches(point.path.as_bytes())
        };
        self.fault == point.fault
            && self.client.is_none_or(|client| client == point.client)
            && self.op.as_ref().is_none_or(|op| *op == point.op)
            && self.nth.is_none_or(|nth| nth == point.nth)
            && self.path.as_ref().is_none_or(is_in_path)
    }

    /// Returns whether it expects a failure with this message at one of these points.
    pub(crate) fn expects(&self, points: &[FaultPoint], message: &str) -> bool {
        points.iter().any(|point| self.is_about(point))
            && (self.raises.as_ref()).is_none_or(|raises| message.contains(raises))
    }
}

impl fmt::Display for SweepRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at)?;
        if let Some(raises) = &self.raises {
            write!(f, " raises {raises}")?;
        }
        write!(f, " because {}", self.reason)
    }
}

/// A rule, and how often it was used.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RuleUse {
    /// The rule.
    pub rule: SweepRule,
    /// The number of points that it applied to.
    pub points: u64,
}

impl RuleUse {
    pub(crate) fn all(rules: &[SweepRule]) -> Vec<Self> {
        let unused = |rule: &SweepRule| Self {
            rule: rule.clone(),
            points: 0,
        };
        rules.iter().map(unused).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_is_about_the_points_that_it_names() {
        let point: FaultPoint = "session-expired:2:create:3:/jobs/*".parse().unwrap();
        for (at, is_about) in [
            ("session-expired", true),
            ("reply-lost", false),
            ("session-expired:2", true),
            ("session-expired:1", false),
            ("session-expired:*:create", true),
            ("session-expired:*:delete", false),
            ("session-expired:*:*:3", true),
            ("session-expired:*:*:1", false),
            ("session-expired:*:*:*:/jobs/*", true),
            ("session-expired:*:*:*:/locks/*", false),
            ("session-expired:*:*:*:/**", true),
        ] {
            let rule: SweepRule = format!("{at} because it is so").parse().unwrap();
            assert_eq!(rule.is_about(&point), is_about, "{at}");
        }
    }

    #[test]
    fn rule_has_a_text_that_comes_back() {
        for text in [
            "session-expired because its lock is lost",
            "reply-late:*:create raises A because B because C",
        ] {
            let rule: SweepRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
        }
        let rule: SweepRule = "reply-late raises A because B because C".parse().unwrap();
        assert_eq!(rule.raises.as_deref(), Some("A because B"));
        let points = ["reply-late:1:create:1:/a".parse().unwrap()];
        assert!(rule.expects(&points, "x A because B y") && !rule.expects(&points, "other"));
    }

    #[test]
    fn wrong_rule_is_refused() {
        for (text, why) in [
            ("session-expired", "no reason"),
            ("session-expired because ", "no reason"),
            ("expired because x", "unknown; one of"),
            ("session-expired:x because y", "the client is no number"),
            (
                "session-expired:*:*:x because y",
                "the ordinal is no number",
            ),
            (
                "session-expired:*:*:*:jobs because y",
                "the path must begin",
            ),
        ] {
            let error = text.parse::<SweepRule>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!("x".repeat(5_000).parse::<SweepRule>().is_err());
        let many = "reply-lost because x\n".repeat(1_001);
        assert!(SweepRule::parse_all(&many).is_err());
    }
}
