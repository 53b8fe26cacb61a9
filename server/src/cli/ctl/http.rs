//! Sends one HTTP request over a plain socket.

use std::{
    fmt::Write as _,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use minikeeper::control::{Method, Verb};
use serde_json::{Map, Value};

/// How long the server may take, in addition to the longest duration in the request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer: far above those of a server with millions of znodes. Unit: bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// The longest head of an answer. Unit: bytes.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// The longest line of an answer that goes on. Unit: bytes.
const LINE_BYTES_MAX: u64 = 16 << 20;

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
    let (stream, sent) = send(call, patience)?;
    let mut bytes = Vec::new();
    let received = stream.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut bytes);
    if bytes.is_empty() {
        return Err(silent(server, received.and(sent), patience));
    }
    if bytes.len() as u64 > ANSWER_BYTES_MAX {
        return Err(endless(server, "answer", ANSWER_BYTES_MAX));
    }
    parse(&bytes).ok_or_else(|| format!("{server} sent no HTTP response, or an incomplete one"))
}

/// Calls a verb whose answer goes on. Passes each line on until there are no more or `take` fails.
///
/// # Errors
/// When the server answers with an error, or sends nothing for too long.
pub(crate) fn follow(
    call: &HttpCall<'_>,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> Result<Option<Answer>, String> {
    let server = call.server;
    let (stream, sent) = send(call, PATIENCE)?;
    let mut stream = BufReader::new(stream);
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
            Err(error) => return Err(silent(server, Err(error), PATIENCE)),
        }
    }
    if !head.starts_with("HTTP/1.0 200") && !head.starts_with("HTTP/1.1 200") {
        let mut bytes = head.into_bytes();
        let _ = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes);
        let answer = parse(&bytes);
        return answer
            .map(Some)
            .ok_or_else(|| format!("{server} sent no HTTP response"));
    }
    let mut line = String::new();
    loop {
        line.clear();
        let mut limited = stream.by_ref().take(LINE_BYTES_MAX);
        match limited.read_line(&mut line) {
            Ok(0) => return Ok(None),
            Ok(_) if limited.limit() == 0 && !line.ends_with('\n') => {
                return Err(endless(server, "line of the answer", LINE_BYTES_MAX));
            }
            Ok(_) => {
                let text = line.trim_end_matches('\n');
                if !text.is_empty() && take(text).is_err() {
                    return Ok(None);
                }
            }
            Err(error) => return Err(silent(server, Err(error), PATIENCE)),
        }
    }
}

/// Connects and sends the request. Returns whether all of it could be sent.
fn send(call: &HttpCall<'_>, patience: Duration) -> Result<(TcpStream, io::Result<()>), String> {
    let (server, mut stream) = connect(call.server)?;
    let request = request(call, server)?;
    let failed = |error: io::Error| format!("cannot reach {server}: {error}");
    stream.set_read_timeout(Some(patience)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    // A server without control closes the connection, perhaps before it has read the whole request.
    let sent = stream.write_all(request.as_bytes());
    Ok((stream, sent))
}

/// Connects to the first of the servers that listens. Returns its address too.
fn connect(servers: &str) -> Result<(&str, TcpStream), String> {
    let mut last = String::new();
    for server in servers.split(',') {
        let socket = server
            .to_socket_addrs()
            .map_err(|error| format!("cannot resolve {server:?}: {error}; write HOST:PORT"))?
            .next()
            .ok_or_else(|| format!("cannot resolve {server:?}: no address"))?;
        match TcpStream::connect_timeout(&socket, PATIENCE) {
            Ok(stream) => return Ok((server, stream)),
            Err(error) => {
                last = format!("cannot reach {server}: {error}; is a server running there?");
            }
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
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
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
mod tests {
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

    #[test]
    fn paths_are_percent_encoded() {
        assert_eq!(encoded("/a b&c=ä"), "%2Fa%20b%26c%3D%C3%A4");
    }
}
