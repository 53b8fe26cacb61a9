//! Where a connection comes from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

/// The origin of a connection. Small, because every connection has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// This process.
    Local,
    V4(Ipv4Addr, u16),
    V6(Box<SocketAddrV6>),
}

impl Peer {
    pub fn ip(&self) -> IpAddr {
        match self {
            Self::Local => Ipv4Addr::LOCALHOST.into(),
            Self::V4(ip, _) => (*ip).into(),
            Self::V6(address) => (*address.ip()).into(),
        }
    }

    /// Returns the address; `None` for this process.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Local => None,
            Self::V4(ip, port) => Some((*ip, *port).into()),
            Self::V6(address) => Some((**address).into()),
        }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => Self::V4(*address.ip(), address.port()),
            // A dual-stack socket reports IPv4 addresses mapped into IPv6.
            SocketAddr::V6(address) => match address.ip().to_ipv4_mapped() {
                Some(ip) => Self::V4(ip, address.port()),
                None => Self::V6(Box::new(address)),
            },
        }
    }
}
