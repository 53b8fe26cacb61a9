//! Contests of Apache Curator in a Java process.
