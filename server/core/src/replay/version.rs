//! Releases of ZooKeeper, and which one a server is.

use std::{
    fmt,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use super::link::PATIENCE;

/// The longest answer to `srvr` that is read. Unit: bytes.
const ANSWER_BYTES_MAX: u64 = 4 << 10;

/// A release of ZooKeeper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// A release by its numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// Parses `3.9.5`. Ignores a suffix such as `-SNAPSHOT`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(['.', '-']).map(str::parse);
        let mut next = || parts.next()?.ok();
        Some(Self::new(next()?, next()?, next().unwrap_or(0)))
    }

    /// Asks a server for its release, with the four-letter word `srvr`. Returns `None` if it does not tell.
    #[must_use]
    pub fn of_server(address: SocketAddr) -> Option<Self> {
        let answer = srvr(address).ok()?;
        let (_, version) = answer.split_once("Zookeeper version: ")?;
        Self::parse(version.lines().next()?)
    }
}

fn srvr(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"srvr")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
