//! Exchanges captured from a live 3.9.5 server. Source: `docs/zookeeper-protocol.md` section 27.
//!
//! The hex is as printed there, except that abbreviations in section 27 (a repeated body, a
//! repeated Stat) are written out.

/// One request and the server's frames up to the next one, as hex of whole frames.
pub(crate) struct Exchange {
    /// The name of the exchange.
    pub(crate) name: &'static str,
    /// The client's frame.
    pub(crate) client: &'static str,
    /// The server's frames, in order.
    pub(crate) server: &'static [&'static str],
    /// Whether the frames have no header: the handshake.
    pub(crate) is_handshake: bool,
}

/// Parses bytes from pairs of hex digits, ignoring blanks.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .map(|digit| digit.expect("hex digits only"))
        .collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty(), "an odd number of hex digits in {text:?}");
    pairs.iter().map(|[high, low]| high << 4 | low).collect()
}

pub(crate) const NEW_SESSION: Exchange = Exchange {
    name: "new_session",
    client: "0000002d 00000000 0000000000000000 00002710 0000000000000000
        00000010 00000000000000000000000000000000 00",
    server: &["00000025 00000000 00002710 0100000d606800c6
        00000010 8ae24c0fb22fdec3b4fdf6308f509833 00"],
    is_handshake: true,
};

pub(crate) const CREATE: Exchange = Exchange {
    name: "create",
    client: "00000036 00000001 00000001 00000005 2f676f6c64 00000002 6869 00000001 0000001f
        00000005 776f726c64 00000006 616e796f6e65 00000000",
    server: &["00000019 00000001 0000000000000486 00000000 00000005 2f676f6c64"],
    is_handshake: false,
};

pub(crate) const CREATE2_EXISTING: Exchange = Exchange {
    name: "create2_existing",
    client: "00000036 00000002 0000000f 00000005 2f676f6c64 00000002 6869 00000001 0000001f
        00000005 776f726c64 00000006 616e796f6e65 00000000",
    server: &["00000010 00000002 0000000000000487 ffffff92"],
    is_handshake: false,
};

pub(crate) const GET_DATA: Exchange = Exchange {
    name: "get_data",
    client: "00000012 00000003 00000004 00000005 2f676f6c64 01",
    server: &["0000005a 00000003 0000000000000487 00000000 00000002 6869
        0000000000000486 0000000000000486 000001a1fd25020c 000001a1fd25020c
        00000000 00000000 00000000
        0000000000000000 00000002 00000000 0000000000000486"],
    is_handshake: false,
};

pub(crate) const SET_DATA: Exchange = Exchange {
    name: "set_data",
    client: "0000001b 00000004 00000005 00000005 2f676f6c64 00000002 796f 00000000",
    server: &[
        "00000021 ffffffff 0000000000000488 00000000 00000003 00000003 00000005 2f676f6c64",
        "00000054 00000004 0000000000000488 00000000
        0000000000000486 0000000000000488 000001a1fd25020c 000001a1fd25020e
        00000001 00000000 00000000
        0000000000000000 00000002 00000000 0000000000000486",
    ],
    is_handshake: false,
};

pub(crate) const EXISTS_MISSING: Exchange = Exchange {
    name: "exists_missing",
    client: "00000017 00000005 00000003 0000000a 2f676f6c642f6e6f6e65 01",
    server: &["00000010 00000005 0000000000000488 ffffff9b"],
    is_handshake: false,
};

pub(crate) const GET_CHILDREN2: Exchange = Exchange {
    name: "get_children2",
    client: "00000012 00000006 0000000c 00000005 2f676f6c64 00",
    server: &["00000058 00000006 0000000000000488 00000000 00000000
        0000000000000486 0000000000000488 000001a1fd25020c 000001a1fd25020e
        00000001 00000000 00000000
        0000000000000000 00000002 00000000 0000000000000486"],
    is_handshake: false,
};

pub(crate) const MULTI_FAILED: Exchange = Exchange {
    name: "multi_failed",
    client: "00000058 00000007 0000000e
        00000005 00 ffffffff 00000005 2f676f6c64 00000001 7a 00000001
        0000000d 00 ffffffff 00000005 2f676f6c64 00000009
        00000002 00 ffffffff 00000005 2f676f6c64 00000001
        ffffffff 01 ffffffff",
    server: &["00000040 00000007 0000000000000489 00000000
        ffffffff 00 00000000 00000000
        ffffffff 00 ffffff99 ffffff99
        ffffffff 00 fffffffe fffffffe
        ffffffff 01 ffffffff"],
    is_handshake: false,
};

pub(crate) const MULTI: Exchange = Exchange {
    name: "multi",
    client: "0000003d 00000008 0000000e 0000000d 00 ffffffff 00000005 2f676f6c64 00000001
        00000002 00 ffffffff 00000005 2f676f6c64 00000001 ffffffff 01 ffffffff",
    server: &["0000002b 00000008 000000000000048a 00000000
        0000000d 00 00000000 00000002 00 00000000 ffffffff 01 ffffffff"],
    is_handshake: false,
};

pub(crate) const PING: Exchange = Exchange {
    name: "ping",
    client: "00000008 fffffffe 0000000b",
    server: &["00000010 fffffffe 000000000000048a 00000000"],
    is_handshake: false,
};

pub(crate) const AUTH: Exchange = Exchange {
    name: "auth",
    client: "00000020 fffffffc 00000064 00000000 00000006 646967657374 00000006 626f623a7077",
    server: &["00000010 fffffffc 0000000000000000 00000000"],
    is_handshake: false,
};

pub(crate) const ADD_WATCH: Exchange = Exchange {
    name: "add_watch",
    client: "00000015 00000009 0000006a 00000005 2f676f6c64 00000001",
    server: &["00000014 00000009 000000000000048a 00000000 00000000"],
    is_handshake: false,
};

pub(crate) const SET_WATCHES: Exchange = Exchange {
    name: "set_watches",
    client: "00000025 fffffff8 00000065 0000000000000005
        00000001 00000005 2f676f6c64 00000000 00000000",
    server: &[
        "00000021 ffffffff ffffffffffffffff 00000000 00000002 00000003 00000005 2f676f6c64",
        "00000010 fffffff8 000000000000048a 00000000",
    ],
    is_handshake: false,
};

pub(crate) const CLOSE_SESSION: Exchange = Exchange {
    name: "close_session",
    client: "00000008 0000000a fffffff5",
    server: &["00000010 0000000a 000000000000048b 00000000"],
    is_handshake: false,
};

pub(crate) const UNKNOWN_SESSION: Exchange = Exchange {
    name: "unknown_session",
    client: "0000002d 00000000 0000000000000000 00002710 0000000000001234
        00000010 01010101010101010101010101010101 00",
    server: &["00000025 00000000 00000000 0000000000000000
        00000010 00000000000000000000000000000000 00"],
    is_handshake: true,
};

/// Every exchange, in the order of section 27.
pub(crate) const ALL: &[Exchange] = &[
    NEW_SESSION,
    CREATE,
    CREATE2_EXISTING,
    GET_DATA,
    SET_DATA,
    EXISTS_MISSING,
    GET_CHILDREN2,
    MULTI_FAILED,
    MULTI,
    PING,
    AUTH,
    ADD_WATCH,
    SET_WATCHES,
    CLOSE_SESSION,
    UNKNOWN_SESSION,
];
