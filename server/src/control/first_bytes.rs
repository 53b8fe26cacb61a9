//! How an HTTP request is told from a handshake.

/// The first four bytes of each method's name, the space behind short ones included. As the length
/// of a handshake each would be more than a gigabyte.
const METHODS: [&[u8; 4]; 10] = [
    b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"QUER",
];

/// Whether a connection that begins so speaks HTTP.
pub(crate) fn are_http(input: &[u8]) -> bool {
    input
        .first_chunk::<4>()
        .is_some_and(|first| METHODS.contains(&first))
}
