//! The known mistakes, each in a file of its own with its texts. `docs/advice.md` has a section for each.

mod change_not_read;
mod check_then_create;
mod foreign_release;
mod former_session;
mod herd;
mod large_data;
mod large_list;
mod lost_update;
mod polling;
mod recreated_ephemeral;
mod recursive_delete;
mod session_not_closed;
mod session_per_operation;
mod unprotected_sequential;
mod watch_leak;

use std::fmt;

use crate::advice::{
    facts::{self, FactTable, Facts},
    findings::{Findings, HABIT, HARM, PROVEN, Suspicions},
    held_locks::{HeldLock, HeldLocks},
    step::{ClientStep, Request, Scene, name_of, parent_of},
};

/// A known mistake of clients.
#[derive(PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AdviceRule {
    /// Its name in lower case, with hyphens. Names do not change.
    pub name: &'static str,
    /// What the mistake is, in a phrase.
    pub title: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What to do instead.
    pub remedy: &'static str,
    /// The number of occurrences that make a finding, unless one of them did harm.
    pub(super) occurrences_min: u64,
}

/// What finds a mistake. Its state is what the steps so far say of it.
pub(super) trait Finder: fmt::Debug {
    /// Takes the next step, and reports the mistakes that it completes.
    fn observe(&mut self, step: ClientStep<'_>, scene: &mut Scene<'_>);

    /// Forgets what it knows of the tree.
    fn forget_tree(&mut self) {}

    /// Reports what no step has explained.
    fn finish(&mut self, _facts: &Facts, _findings: &mut Findings) {}
}

macro_rules! rules {
    ($($module:ident::$rule:ident),* $(,)?) => {
        impl AdviceRule {
            /// Every rule, in the order of reports.
            pub const ALL: &[Self] = &[$($module::RULE),*];
        }

        /// Returns what finds each of [`AdviceRule::ALL`], in that order.
        pub(super) fn all() -> Vec<Box<dyn Finder>> {
            vec![$(Box::<$module::$rule>::default()),*]
        }
    };
}

rules![
    unprotected_sequential::UnprotectedSequential,
    herd::Herd,
    polling::Polling,
    large_list::LargeList,
    lost_update::LostUpdate,
    check_then_create::CheckThenCreate,
    former_session::FormerSession,
    change_not_read::ChangeNotRead,
    session_per_operation::SessionPerOperation,
    session_not_closed::SessionNotClosed,
    watch_leak::WatchLeak,
    recreated_ephemeral::RecreatedEphemeral,
    foreign_release::ForeignRelease,
    large_data::LargeData,
    recursive_delete::RecursiveDelete,
];

impl AdviceRule {
    /// Returns the rule of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|rule| rule.name == name)
    }
}
