//! Tests the codec through its public interface.

mod allocation;
mod golden;
mod path;
mod roundtrip;
mod strategies;
