//! The `resource_lock` table of MySQL, on MariaDB.
