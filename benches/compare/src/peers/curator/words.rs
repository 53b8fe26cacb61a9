//! The protocol between the bench and Java, and the difference of their clocks.

use crate::{
    history::What,
    peers::{Access, Belief},
};

/// How far Java's clock is ahead of this process's clock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Clock {
    ahead_ns: i64,
    /// The largest possible error of that.
    pub(super) error_ns: u64,
}

impl Clock {
    /// The middle of the possible differences; `None` if none is possible.
    pub(super) fn between(least: i64, most: i64) -> Option<Self> {
        let width = u64::try_from(most.checked_sub(least)?).ok()?;
        Some(Self {
            ahead_ns: least + signed(width / 2),
            error_ns: width.div_ceil(2),
        })
    }

    /// Converts a time of Java's clock to this process's clock.
    pub(super) fn own_ns(self, there: i64) -> u64 {
        u64::try_from(there - self.ahead_ns).unwrap_or(0)
    }
}

/// Converts to a signed number, which lasts for 292 years.
pub(super) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// `I AT_NS CODE`.
pub(super) fn event(line: &str) -> Option<(usize, i64, u8)> {
    let mut words = line.split(' ');
    let index = words.next()?.parse().ok()?;
    let at = words.next()?.parse().ok()?;
    let &[code] = words.next()?.as_bytes() else {
        return None;
    };
    words.next().is_none().then_some((index, at, code))
}

/// `belief WORD`; `None` if it is another line.
pub(super) fn belief(line: &str) -> Option<Belief> {
    match line.strip_prefix("belief ")? {
        "held" => Some(Belief::Held),
        "unsure" => Some(Belief::Unsure),
        _ => Some(Belief::Lost),
    }
}

/// The meaning of a code for a contender with this previous code; `None` if it cannot follow.
pub(super) fn what(before: u8, code: u8) -> Option<What> {
    match (before, code) {
        (b'R', b'd') => Some(What::Due),
        (b'R' | b'd', b'a') => Some(What::Asked(Access::Exclusive)),
        (b'R' | b'd', b's') => Some(What::Asked(Access::Shared)),
        (b'a' | b's', b'g') => Some(What::Granted { token: None }),
        (b'a' | b's', b'f') => Some(What::Refused),
        (b'a' | b's', b'u') => Some(What::AcquireUnknown),
        (b'g', b'r') => Some(What::Releasing),
        (b'r', b'R') => Some(What::Released),
        (b'r', b'u') => Some(What::ReleaseUnknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_lies_in_the_middle_of_what_is_possible() {
        let clock = Clock::between(1_000, 1_041).unwrap();
        assert_eq!((clock.ahead_ns, clock.error_ns), (1_020, 21));
        assert_eq!(clock.own_ns(5_020), 4_000);
        assert_eq!(Clock::between(2, 1), None);
        // Java's clock may also be behind.
        assert_eq!(Clock::between(-9, -9).unwrap().own_ns(1), 10);
    }

    #[test]
    fn event_is_three_words() {
        assert_eq!(event("3 123456 g"), Some((3, 123_456, b'g')));
        for line in ["", "3 g", "3 123 gg", "3 123 g 4", "x 123 g", "end 5"] {
            assert_eq!(event(line), None, "{line:?}");
        }
    }

    #[test]
    fn belief_is_not_a_reply() {
        assert_eq!(belief("belief unsure"), Some(Belief::Unsure));
        assert_eq!(belief("held 17"), None);
    }

    #[test]
    fn failure_refers_to_the_operation_in_progress() {
        assert_eq!(what(b'a', b'u'), Some(What::AcquireUnknown));
        assert_eq!(what(b'r', b'u'), Some(What::ReleaseUnknown));
    }

    #[test]
    fn event_out_of_turn_is_refused() {
        let wrong = [
            (b'R', b'g'),
            (b'd', b'g'),
            (b'g', b'a'),
            (b'u', b'a'),
            (b'f', b'a'),
        ];
        for (before, code) in wrong {
            assert_eq!(what(before, code), None);
        }
    }
}
