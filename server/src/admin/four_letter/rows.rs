//! The bounds on a listing: `four_letter_rows_max` and, for its text, `reply_bytes_max`.

use minikeeper_engine::Room;

use crate::config::Config;

/// What one listing of an answer may have. Its text is there twice for a moment, and `dump` has
/// three.
pub(super) fn room(config: &Config) -> Room {
    Room {
        rows: config.four_letter_rows_max,
        bytes: config.reply_bytes_max() / 4,
    }
}

/// The room for so many rows as lines of connections have.
pub(super) fn connection_rows_max(config: &Config) -> usize {
    const ROW_BYTES: usize = 512;
    let Room { rows, bytes } = room(config);
    rows.min(bytes / ROW_BYTES)
}

/// The line under a listing that would have been longer.
pub(super) fn add_left_out(text: &mut String, left_out: usize, config: &Config) {
    if left_out > 0 {
        text.push_str(&format!(
            "{left_out} more lines are left out (four_letter_rows_max {}, reply_bytes_max {})\n",
            config.four_letter_rows_max,
            config.reply_bytes_max()
        ));
    }
}
