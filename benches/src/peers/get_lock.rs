//! `GET_LOCK` of MariaDB.
