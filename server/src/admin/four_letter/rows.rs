//! The bound on the lines of a listing: `four_letter_rows_max`.

/// The line under a listing that would have been longer.
pub(super) fn add_left_out(text: &mut String, left_out: usize, rows_max: usize) {
    if left_out > 0 {
        text.push_str(&format!(
            "{left_out} more lines are left out (four_letter_rows_max {rows_max})\n"
        ));
    }
}
