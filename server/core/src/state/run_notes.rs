//! What a sweep tries in a universe, and what its test says of the run.

use std::collections::BTreeMap;

/// The maximum number of goals that a run may note.
pub const GOALS_MAX: usize = 1_000;

/// The longest goal. Unit: characters.
pub const GOAL_CHARS_MAX: usize = 200;

/// The notes of the run that is being done in a universe.
#[derive(Debug, Default)]
pub struct RunNotes {
    /// Its points, `+` between two; `None` if no sweep uses the universe.
    pub points: Option<String>,
    /// What some run is to reach, and whether this one has.
    pub goals: BTreeMap<String, bool>,
}

impl RunNotes {
    /// Notes a goal, and whether it is reached. Returns whether there is room.
    pub fn note(&mut self, goal: &str, holds: bool) -> bool {
        if let Some(reached) = self.goals.get_mut(goal) {
            *reached |= holds;
            return true;
        }
        let fits = self.goals.len() < GOALS_MAX && goal.chars().nth(GOAL_CHARS_MAX).is_none();
        if fits {
            self.goals.insert(goal.to_owned(), holds);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_bounded_and_once_reached_stay_so() {
        let mut notes = RunNotes::default();
        assert!(notes.note("a", false) && notes.note("a", true) && notes.note("a", false));
        assert_eq!(notes.goals, [("a".to_owned(), true)].into());
        assert!(!notes.note(&"x".repeat(201), true));
        for number in 1..GOALS_MAX {
            assert!(notes.note(&number.to_string(), true));
        }
        assert!(!notes.note("one more", true) && notes.note("a", true));
    }
}
