//! Scenario tables and unit tests too long for the file they test.
