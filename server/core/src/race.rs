//! Waits for the first of two futures. `tokio::select!` would do the same, but every embedder would
//! have to build its Rust parser.

use std::{future::poll_fn, pin::pin, task::Poll};

/// Waits for one of two futures and drops the other. Polls `first` first, and returns its output if
/// both are ready.
///
/// # Cancel safety
/// Cancel safe if both futures are.
pub async fn first_of<T>(first: impl Future<Output = T>, second: impl Future<Output = T>) -> T {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|context| match first.as_mut().poll(context) {
        Poll::Pending => second.as_mut().poll(context),
        ready @ Poll::Ready(_) => ready,
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn first_of_two_ready_futures_wins() {
        assert_eq!(first_of(ready(1), ready(2)).await, 1);
        assert_eq!(first_of(pending(), ready(2)).await, 2);
    }
}
