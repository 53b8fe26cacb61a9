//! Sends one HTTP request over a plain socket.

use std::{
    fmt::Write as _,
    io::{self, BufRead as _, BufReader, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use minikeeper::control::{Method, Verb};
use serde_json::{Map, Value};

use crate::{address, clock};

/// How long the server may take, in addition to the longest duration in the request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer: far above those of a server with millions of znodes. Unit: bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// The longest head of an answer. Unit: bytes.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// The longest line of an answer that goes on. Unit: bytes.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// How much of an answer must arrive within the limit of time, unless a line or the answer ends before.
/// Unit: bytes.
const PIECE_BYTES: usize = 64 << 10;

/// A verb to call.
pub(crate) struct HttpCall<'a> {
    /// `HOST:PORT`, or several with commas, of which the first that listens is asked.
    pub(crate) server: &'a str,
    pub(crate) token: Option<&'a str>,
    pub(crate) universe: Option<&'a str>,
    pub(crate) verb: &'a Verb,
    pub(crate) fields: &'a Map<String, Value>,
    /// The longest duration among the fields.
    pub(crate) longest: Duration,
}

/// The server's response.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Calls a verb.
///
/// # Errors
/// When there is no answer.
pub(crate) fn call(call: &HttpCall<'_>) -> Result<Answer, String> {
    let server = call.server;
    let patience = PATIENCE.saturating_add(call.longest);
    let (stream, sent) = send(call)?;
    let mut bytes = Vec::new();
    let mut stream = PacedStream::new(stream, patience);
    let received = (&mut stream)
        .take(ANSWER_BYTES_MAX + 1)
        .read_to_end(&mut bytes);
    if bytes.is_empty() {
        return Err(silent(server, received.and(sent), patience));
    }
    if received.is_err_and(|error| is_timeout(&error)) {
        return Err(slow(server, stream.limit));
    }
    if bytes.len() as u64 > ANSWER_BYTES_MAX {
        return Err(endless(server, "answer", ANSWER_BYTES_MAX));
    }
    parse(&bytes).ok_or_else(|| format!("{server} sent no HTTP response, or an incomplete one"))
}

/// Calls a verb whose answer goes on. Passes each line on until there are no more or `take` fails.
///
/// # Errors
/// When the server answers with an error, or sends nothing for too long, or `take` cannot write.
pub(crate) fn follow(
    call: &HttpCall<'_>,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> Result<Option<Answer>, String> {
    let server = call.server;
    let (stream, sent) = send(call)?;
    let mut stream = BufReader::new(PacedStream::new(stream, PATIENCE));
    let mut head = String::new();
    let mut start = stream.by_ref().take(HEAD_BYTES_MAX);
    loop {
        match start.read_line(&mut head) {
            Ok(0) if head.is_empty() => return Err(silent(server, sent, PATIENCE)),
            Ok(_) if head.ends_with("\r\n\r\n") || head.ends_with("\n\n") => break,
            Ok(0) if start.limit() == 0 => {
                return Err(endless(server, "head of the answer", HEAD_BYTES_MAX));
            }
            Ok(0) => return Err(format!("{server} sent no HTTP response")),
            Ok(_) => {}
            Err(error) if is_timeout(&error) && !head.is_empty() => {
                return Err(slow(server, PATIENCE));
            }
            Err(error) => return Err(silent(server, Err(error), PATIENCE)),
        }
    }
    if !head.starts_with("HTTP/1.0 200") && !head.starts_with("HTTP/1.1 200") {
        let mut bytes = head.into_bytes();
        let received = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
        if received.is_err_and(|error| is_timeout(&error)) {
            return Err(slow(server, PATIENCE));
        }
        let answer = parse(&bytes);
        return answer
            .map(Some)
            .ok_or_else(|| format!("{server} sent no HTTP response"));
    }
    let mut line = String::new();
    loop {
        line.clear();
        stream.get_mut().begin_piece();
        let mut limited = stream.by_ref().take(LINE_BYTES_MAX);
        match limited.read_line(&mut line) {
            Ok(0) => return Ok(None),
            Ok(_) if limited.limit() == 0 && !line.ends_with('\n') => {
                return Err(endless(server, "line of the answer", LINE_BYTES_MAX));
            }
            Ok(_) => {
                let text = line.trim_end_matches('\n');
                let taken = match text {
                    "" => Ok(()),
                    text => take(text),
                };
                if taken.is_err() {
                    return minikeeper_shell::written(taken).map(|()| None);
                }
            }
            Err(error) if is_timeout(&error) && !line.is_empty() => {
                return Err(slow(server, PATIENCE));
            }
            Err(error) => return Err(silent(server, Err(error), PATIENCE)),
        }
    }
}

/// A stream that can be read with a limit of time, and its clock.
pub(crate) trait TimedRead {
    fn now(&self) -> Instant;

    fn read_within(&mut self, bytes: &mut [u8], limit: Duration) -> io::Result<usize>;
}

impl TimedRead for TcpStream {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn read_within(&mut self, bytes: &mut [u8], limit: Duration) -> io::Result<usize> {
        self.set_read_timeout(Some(limit))?;
        self.read(bytes)
    }
}

/// A stream that must deliver each piece within a limit of time: a server that sends a byte now and then
/// does not keep the reader for longer.
pub(crate) struct PacedStream<S> {
    stream: S,
    /// The limit for the current piece.
    limit: Duration,
    began: Instant,
    /// What is missing of the piece. Unit: bytes.
    missing: usize,
}

impl<S: TimedRead> PacedStream<S> {
    /// The first piece has this limit, the others [`PATIENCE`].
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self {
            began: stream.now(),
            stream,
            limit,
            missing: PIECE_BYTES,
        }
    }

    fn begin_piece(&mut self) {
        self.began = self.stream.now();
        self.limit = PATIENCE;
        self.missing = PIECE_BYTES;
    }
}

impl<S: TimedRead> Read for PacedStream<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let elapsed = self.stream.now().saturating_duration_since(self.began);
        let left = self.limit.saturating_sub(elapsed);
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let count = self.stream.read_within(bytes, left)?;
        self.missing = self.missing.saturating_sub(count);
        if self.missing == 0 {
            self.begin_piece();
        }
        Ok(count)
    }
}

impl<S: Write> Write for PacedStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Returns the error for an answer that has begun, and arrives too slowly.
fn slow(server: &str, limit: Duration) -> String {
    format!(
        "the answer of {server} is too slow: it does not end, and has less than {PIECE_BYTES} bytes more, \
         within {} s; is it a minikeeper?",
        limit.as_secs()
    )
}

/// Connects and sends the request. Returns whether all of it could be sent.
fn send(call: &HttpCall<'_>) -> Result<(TcpStream, io::Result<()>), String> {
    let (server, mut stream) = connect(call.server)?;
    let request = request(call, server)?;
    let failed = |error: io::Error| format!("cannot reach {server}: {error}");
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    // A server without control closes the connection, perhaps before it has read the whole request.
    let sent = stream.write_all(request.as_bytes());
    Ok((stream, sent))
}

/// Connects to the first of the servers that listens. Returns its address too.
fn connect(servers: &str) -> Result<(&str, TcpStream), String> {
    let mut last = String::new();
    for server in servers.split(',') {
        let stream = address::resolve(server).and_then(|sockets| {
            address::connect(&sockets, PATIENCE).map_err(|error| {
                format!("cannot reach {server}: {error}; is a server running there?")
            })
        });
        match stream {
            Ok(stream) => return Ok((server, stream)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the error for an answer that does not end.
fn endless(server: &str, what: &str, bytes_max: u64) -> String {
    format!(
        "the {what} of {server} is longer than the limit of {bytes_max} bytes; is it a minikeeper?"
    )
}

/// Returns the error for a server that sent nothing.
fn silent(server: &str, outcome: io::Result<()>, patience: Duration) -> String {
    let why = match outcome {
        Err(error) if is_timeout(&error) => {
            format!("no answer within {} s", patience.as_secs())
        }
        Err(error) => error.to_string(),
        Ok(()) => "the connection was closed without an answer".to_owned(),
    };
    format!(
        "cannot reach {server}: {why}; does the server answer HTTP? see its options --control and --no-control"
    )
}

fn request(call: &HttpCall<'_>, server: &str) -> Result<String, String> {
    let HttpCall {
        token,
        universe,
        verb,
        fields,
        ..
    } = *call;
    let mut path = "/v1/".to_owned();
    if let Some(universe) = universe {
        path.push_str("universes/");
        path.push_str(&encoded(universe));
        path.push('/');
    }
    path.push_str(verb.name);
    let mut body = String::new();
    match verb.method {
        Method::Get => {
            for (index, (name, value)) in fields.iter().enumerate() {
                path.push(if index == 0 { '?' } else { '&' });
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                // Writing to a string cannot fail.
                let _ = write!(path, "{name}={}", encoded(&text));
            }
        }
        Method::Post => body = Value::Object(fields.clone()).to_string(),
    }
    // An answer to HTTP 1.0 has no chunks: its lines arrive as they are.
    let http = if verb.is_stream() {
        "HTTP/1.0"
    } else {
        "HTTP/1.1"
    };
    let mut request = format!(
        "{} {path} {http}\r\nHost: {server}\r\nConnection: close\r\n",
        verb.method.name()
    );
    if let Some(token) = token {
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the token must be printable ASCII without blanks".to_owned());
        }
        let _ = write!(request, "Authorization: Bearer {token}\r\n");
    }
    if verb.method == Method::Post {
        let _ = write!(
            request,
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
    }
    request.push_str("\r\n");
    request.push_str(&body);
    Ok(request)
}

/// Percent-encodes a component of a URL.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Parses an answer that ends with the connection.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let head_bytes = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..head_bytes]).ok()?;
    let body = &bytes[head_bytes + 4..];
    let (status, headers) = head.split_once("\r\n")?;
    let status = status
        .strip_prefix("HTTP/1.")?
        .get(2..)?
        .get(..3)?
        .parse()
        .ok()?;
    let length = headers.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let body = body.get(..length?)?;
    let body = String::from_utf8(body.to_vec()).ok()?;
    Some(Answer { status, body })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn complete_answers_are_parsed() {
        let answer = |text: &str| parse(text.as_bytes());
        let whole = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nx: y\r\n\r\n{}";
        let body = "{}".to_owned();
        assert_eq!(answer(whole), Some(Answer { status: 404, body }));
        for broken in [
            "",
            "x",
            "HTTP/1.1 200 OK\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
            "HTTP/1.1 2\r\n\r\n",
        ] {
            assert_eq!(answer(broken), None, "{broken:?}");
        }
    }

    /// Delivers a number of bytes at a time, each after a wait.
    pub(crate) struct TricklingStream {
        now: Instant,
        pause: Duration,
        at_once: usize,
        left: usize,
    }

    impl TricklingStream {
        pub(crate) fn new(pause: Duration, at_once: usize, left: usize) -> Self {
            Self {
                now: clock::now(),
                pause,
                at_once,
                left,
            }
        }
    }

    impl Write for TricklingStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl TimedRead for TricklingStream {
        fn now(&self) -> Instant {
            self.now
        }

        fn read_within(&mut self, bytes: &mut [u8], limit: Duration) -> io::Result<usize> {
            let count = self.at_once.min(self.left).min(bytes.len());
            if count > 0 {
                self.now += self.pause.min(limit);
                if self.pause >= limit {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            }
            self.left -= count;
            Ok(count)
        }
    }

    fn read_paced(pause: Duration, at_once: usize, left: usize) -> io::Result<usize> {
        let stream = TricklingStream::new(pause, at_once, left);
        io::copy(&mut PacedStream::new(stream, PATIENCE), &mut io::sink())
            .map(|count| usize::try_from(count).unwrap())
    }

    /// Each byte of an answer had a limit of time, and the answer none: a server that sent one a second
    /// held `minikeeper ctl` for years.
    #[test]
    fn answer_that_trickles_ends_with_an_error() {
        let second = Duration::from_secs(1);
        let slow = read_paced(second, 1, 1_000_000).unwrap_err();
        assert!(is_timeout(&slow), "{slow}");
        // A large answer takes what it takes, if it arrives at 64 KiB in 30 s.
        assert_eq!(read_paced(second, 4 << 10, 64 << 20).unwrap(), 64 << 20);
        // The end of an answer is no matter of its length.
        assert_eq!(read_paced(second, 1, 29).unwrap(), 29);
    }

    /// A tail may wait for the next line as long as the server sends empty lines.
    #[test]
    fn lines_may_be_as_far_apart_as_empty_ones() {
        let stream = TricklingStream::new(Duration::from_secs(10), 1, 100);
        let mut stream = PacedStream::new(stream, PATIENCE);
        for _ in 0..100 {
            stream.begin_piece();
            assert_eq!(stream.read(&mut [0]).unwrap(), 1);
        }
    }

    #[test]
    fn paths_are_percent_encoded() {
        assert_eq!(encoded("/a b&c=ä"), "%2Fa%20b%26c%3D%C3%A4");
    }
}
