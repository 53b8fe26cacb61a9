//! MariaDB on loopback.
