//! Apache Curator's lock recipes for async Rust: not written yet.
