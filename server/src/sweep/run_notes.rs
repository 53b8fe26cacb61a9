//! What a test may ask of the sweep that runs it, and tell it.

use minikeeper_core::state::run_notes::{GOAL_CHARS_MAX, GOALS_MAX};

use crate::{orders::fault::SweepFault, sweep::point::FaultPoint, universe::Universe};

impl Universe {
    /// Returns the faults that the sweep tries in this run: none in a run without faults, with an order of requests, or
    /// without a sweep. A test that expects an error of one fault asks so.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// assert!(server.sweep_faults().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sweep_faults(&self) -> Vec<SweepFault> {
        let points = self.sweep_points();
        points.into_iter().map(|point| point.fault).collect()
    }

    /// Returns the points that the sweep tries in this run.
    pub(crate) fn sweep_points(&self) -> Vec<FaultPoint> {
        let notes = self.shared.run_notes.lock();
        let text = notes.points.as_deref().unwrap_or_default();
        match text {
            "" => Vec::new(),
            text => FaultPoint::parse_run(text).unwrap_or_default(),
        }
    }

    /// Notes a goal that some run of the sweep must reach: a state without which the test would show little, such as "the
    /// second contender waited". Call it where it may hold, in every run. If no run reaches it, the sweep is
    /// incomplete. Does nothing without a sweep.
    ///
    /// # Panics
    /// When a run has more than 1,000 goals, or one is longer than 200 characters.
    ///
    /// # Examples
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = minikeeper::Server::builder().start().await?;
    /// let contenders = server.children("/lock").map_or(0, |names| names.len());
    /// server.sometimes("two contenders at a time", contenders > 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sometimes(&self, goal: &str, holds: bool) {
        assert!(
            self.note_goal(goal, holds),
            "goal {:?}: a run has at most {GOALS_MAX} goals of at most {GOAL_CHARS_MAX} characters",
            goal.chars().take(GOAL_CHARS_MAX).collect::<String>()
        );
    }

    /// Notes a goal. Returns whether there is room for it.
    pub(crate) fn note_goal(&self, goal: &str, holds: bool) -> bool {
        let mut notes = self.shared.run_notes.lock();
        notes.points.is_none() || notes.note(goal, holds)
    }
}
