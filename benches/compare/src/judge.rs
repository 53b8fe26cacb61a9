//! Judges from the history of a run whether a lock kept its promises.
//!
//! *Exclusion*: a hold lasts from the return of acquire to the call of release, or to the moment
//! its client learned of the loss, or died. No two holds that exclude one another may overlap.
//!
//! *Fencing*: tokens rise from grant to grant; no write of the rightful holder is refused; no write
//! of a holder is accepted after that of a later one.
//!
//! *Unknown outcomes*: an acquire or release whose outcome is unknown counts neither as a hold nor
//! as a violation, but the report shows their number.
//!
//! A question that could not be checked gives [`Finding::NotChecked`], which is not a pass.
//!
//! | module | question |
//! | --- | --- |
//! | `exclusion` | did holds overlap that exclude one another? |
//! | `fencing` | do the tokens protect the resource? |
//! | `counterexample` | the smallest part of a history that shows it |

mod counterexample;
mod exclusion;
mod fencing;

use std::collections::BTreeMap;

use crate::{
    history::{History, What},
    holds::holds,
};

/// How busy the contenders' thread may be: above this share of its core the figures describe the
/// load generator, not the lock.
pub const BUSY_MAX: f64 = 0.95;

/// The judge's answer to one question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// It was checked and holds.
    Holds {
        /// The number of holds, grants or writes that were checked.
        checked: usize,
    },
    /// It was checked and does not hold.
    Violated {
        /// The number of violations.
        times: usize,
        /// The smallest part of the history that shows one, one line per event.
        counterexample: String,
    },
    /// It could not be checked; the text says why.
    NotChecked(String),
}

impl Finding {
    /// Combines two findings: a violation in either is a violation, and the result is `NotChecked`
    /// only if neither was checked.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Violated {
                    times,
                    counterexample,
                },
                Self::Violated {
                    times: more,
                    counterexample: another,
                },
            ) => Self::Violated {
                times: times + more,
                counterexample: if another.lines().count() < counterexample.lines().count() {
                    another
                } else {
                    counterexample
                },
            },
            (violated @ Self::Violated { .. }, _) | (_, violated @ Self::Violated { .. }) => {
                violated
            }
            (Self::Holds { checked }, Self::Holds { checked: more }) => Self::Holds {
                checked: checked + more,
            },
            (holds @ Self::Holds { .. }, Self::NotChecked(_))
            | (Self::NotChecked(_), holds @ Self::Holds { .. }) => holds,
            (Self::NotChecked(why), Self::NotChecked(_)) => Self::NotChecked(why),
        }
    }

    /// Whether it is a violation.
    #[must_use]
    pub const fn is_violated(&self) -> bool {
        matches!(self, Self::Violated { .. })
    }
}

/// The judge's answers for a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether holds that exclude one another overlapped.
    pub exclusion: Finding,
    /// Whether the fencing tokens protect the resource.
    pub fencing: Finding,
    /// Acquires and releases with an unknown outcome.
    pub unknown: usize,
    /// Why the figures of this run must not be published; `None` if they may.
    pub refusal: Option<String>,
}

impl Verdict {
    /// Combines the verdicts on two runs.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            exclusion: self.exclusion.and(other.exclusion),
            fencing: self.fencing.and(other.fencing),
            unknown: self.unknown + other.unknown,
            refusal: self.refusal.or(other.refusal),
        }
    }
}

/// Judges a run. `busy`: the share of its core that the contenders' thread used, if known.
#[must_use]
pub fn judge(history: &History, busy: Option<f64>) -> Verdict {
    let unknown = history
        .events
        .iter()
        .filter(|event| matches!(event.what, What::AcquireUnknown | What::ReleaseUnknown))
        .count();
    let holds = match holds(history) {
        Ok(holds) => holds,
        Err(nonsense) => {
            let why = format!("the history makes no sense: {nonsense}");
            return Verdict {
                exclusion: Finding::NotChecked(why.clone()),
                fencing: Finding::NotChecked(why.clone()),
                unknown,
                refusal: Some(why),
            };
        }
    };
    let exclusion = exclusion::check(history, &holds);
    let fencing = fencing::check(history, &holds);
    let refusal = if holds.is_empty() {
        Some("no contender got the lock".to_owned())
    } else if exclusion.is_violated() {
        Some("more contenders held the lock than may hold it".to_owned())
    } else if fencing.is_violated() {
        Some("the fencing tokens do not protect the resource".to_owned())
    } else {
        sessions(history).or_else(|| saturation(busy))
    };
    Verdict {
        exclusion,
        fencing,
        unknown,
        refusal,
    }
}

/// Reports contenders that share a session, or whose session is not known.
fn sessions(history: &History) -> Option<String> {
    let mut owners = BTreeMap::new();
    for (contender, session) in history.sessions.iter().enumerate() {
        if session.is_empty() {
            return Some(format!("the session of contender {contender} is not known"));
        }
        if let Some(other) = owners.insert(session, contender) {
            return Some(format!(
                "contenders {other} and {contender} share session {session}"
            ));
        }
    }
    None
}

fn saturation(busy: Option<f64>) -> Option<String> {
    busy.filter(|busy| *busy > BUSY_MAX)?;
    Some(format!(
        "the load generator was saturated: its thread was busy for more than {:.0} % of the time, and \
         the figures would describe it rather than the lock; hold the lock longer, or use fewer contenders",
        BUSY_MAX * 100.0
    ))
}

#[cfg(test)]
#[path = "judge/tests.rs"]
mod tests;
