//! Recordings, which may come from anywhere.

use bytes::Bytes;
use minikeeper::{Recording, replay};

/// Replays a recording: damaged or not, that ends, without a panic, and equally each time.
///
/// # Panics
/// If a guarantee does not hold.
pub fn replay_recording(data: &[u8]) {
    let Ok(recording) = Recording::from_bytes(Bytes::copy_from_slice(data)) else {
        return;
    };
    let text = |outcome: Result<minikeeper::Replayed, minikeeper::ReplayError>| match outcome {
        Ok(replayed) => format!("{replayed:?}"),
        Err(error) => error.to_string(),
    };
    let first = text(replay(&recording));
    let again = Recording::from_bytes(recording.to_bytes()).expect("it was read before");
    assert_eq!(recording.to_bytes(), again.to_bytes());
    assert_eq!(first, text(replay(&again)));
}
