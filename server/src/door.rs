//! Whether a server can be reached: its listening tasks, and how there come to be some again.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::start::StartError;

/// What listens already; called, it accepts.
pub(crate) type Serve = Box<dyn FnOnce() -> Vec<JoinHandle<()>> + Send>;

type Bind = Arc<dyn Fn() -> Result<Serve, StartError> + Send + Sync>;

/// What runs while a server is up.
#[derive(Default)]
pub(crate) struct Door {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    state: State,
    /// Listens again, on the same port.
    bind: Option<Bind>,
}

#[derive(Default)]
enum State {
    /// Reachable, by these tasks.
    Up(Vec<JoinHandle<()>>),
    /// Not reachable for now.
    #[default]
    Down,
    /// Never again.
    Stopped,
}

/// What a door was found to be.
pub(crate) enum Found {
    Up,
    /// Down; what listens again.
    Down(Bind),
    Stopped,
}

impl Door {
    /// Says how the server listens again once it is down.
    pub(crate) fn hang(
        &self,
        bind: impl Fn() -> Result<Serve, StartError> + Send + Sync + 'static,
    ) {
        self.inner.lock().bind = Some(Arc::new(bind));
    }

    pub(crate) fn look(&self) -> Found {
        let inner = self.inner.lock();
        match (&inner.state, &inner.bind) {
            (State::Up(_), _) => Found::Up,
            (State::Down, Some(bind)) => Found::Down(Arc::clone(bind)),
            (State::Down, None) | (State::Stopped, _) => Found::Stopped,
        }
    }

    /// Is up by these tasks; they end if there is no way back.
    pub(crate) fn set_up(&self, tasks: Vec<JoinHandle<()>>) {
        let mut inner = self.inner.lock();
        if matches!(inner.state, State::Stopped) {
            return abort(&tasks);
        }
        inner.state = State::Up(tasks);
    }

    /// Ends the tasks, which are given to be waited for; `for_ever` if it never comes up again.
    pub(crate) fn close(&self, for_ever: bool) -> Vec<JoinHandle<()>> {
        let mut inner = self.inner.lock();
        let next = if for_ever || matches!(inner.state, State::Stopped) {
            // It holds what holds the door.
            inner.bind = None;
            State::Stopped
        } else {
            State::Down
        };
        match std::mem::replace(&mut inner.state, next) {
            State::Up(tasks) => {
                abort(&tasks);
                tasks
            }
            State::Down | State::Stopped => Vec::new(),
        }
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.inner.lock().state {
            State::Up(_) => "up",
            State::Down => "down",
            State::Stopped => "stopped",
        };
        f.debug_tuple("Door").field(&state).finish()
    }
}

fn abort(tasks: &[JoinHandle<()>]) {
    for task in tasks {
        task.abort();
    }
}
