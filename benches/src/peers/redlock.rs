//! Redlock over several independent Redis processes.
