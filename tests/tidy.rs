//! Tests the source tree.
