package io.github.minikeeper;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

/**
 * The control API of a server: JSON over HTTP, on the port of the clients. Each call uses a new connection, so that any
 * thread may call, and none is retried.
 */
final class Control {
  /** Longer than any verb takes; waits add their own limit. */
  private static final int PATIENCE_MS = 30_000;
  private static final int ANSWER_BYTES = 16 * 1024;
  /** What an answer may have: it is held in memory several times while it is parsed. */
  static final int ANSWER_BYTES_MAX = (int) Math.min(Runtime.getRuntime().maxMemory() / 8, 256 << 20);

  /** Where the servers listen, HOST:PORT with commas between; one, unless it is an ensemble. */
  final String addresses;
  final String token;
  private final InetSocketAddress[] servers;
  private final String prefix;
  /** The address of control while the server is down, which go_down returned; null while it is up. */
  private volatile InetSocketAddress side;

  Control(String addresses, String token, String universe) {
    this.addresses = addresses;
    this.token = token;
    this.prefix = universe == null ? "/v1/" : "/v1/universes/" + encode(universe).replace("+", "%20") + "/";
    String[] each = addresses.split(",");
    servers = new InetSocketAddress[each.length];
    for (int i = 0; i < each.length; i++) servers[i] = address(each[i]);
  }

  /** The port of the server, or of the first one. */
  int port() {
    return servers[0].getPort();
  }

  /** Returns the control API of a universe of the same server, also while that is down. */
  Control of(String universe) {
    Control control = new Control(addresses, token, universe);
    control.side = side;
    return control;
  }

  /** Calls a verb that only reads. */
  Map<String, Object> read(String verb, Map<String, ?> query) {
    StringBuilder path = new StringBuilder(verb);
    char separator = '?';
    for (Map.Entry<String, ?> entry : query.entrySet()) {
      path.append(separator).append(entry.getKey()).append('=').append(encode(entry.getValue().toString()));
      separator = '&';
    }
    return ask("GET", verb, path.toString(), null, 0);
  }

  /** Calls a verb that changes something or waits. */
  Map<String, Object> act(String verb, Map<String, ?> body) {
    Object within = body.get("within_ms");
    return act(verb, body, within instanceof Number ? ((Number) within).intValue() : 0);
  }

  /** Calls a verb that waits for as long as this, which none of its fields says. */
  Map<String, Object> act(String verb, Map<String, ?> body, int withinMs) {
    return ask("POST", verb, verb, Json.write(body), withinMs);
  }

  private Map<String, Object> ask(String method, String verb, String path, String body, int withinMs) {
    byte[] content = body == null ? new byte[0] : body.getBytes(StandardCharsets.UTF_8);
    StringBuilder head = new StringBuilder();
    head.append(method).append(' ').append(prefix).append(path).append(" HTTP/1.1\r\n");
    head.append("Host: ").append(servers[0].getHostString()).append(':').append(port()).append("\r\n");
    head.append("Connection: close\r\nAccept: application/json\r\n");
    if (token != null) head.append("Authorization: Bearer ").append(token).append("\r\n");
    if (body != null) head.append("Content-Type: application/json\r\n");
    head.append("Content-Length: ").append(content.length).append("\r\n\r\n");

    byte[] answer;
    try (Socket socket = connect()) {
      long end = System.nanoTime() + (PATIENCE_MS + Math.max(0L, withinMs)) * 1_000_000;
      OutputStream out = socket.getOutputStream();
      byte[] start = head.toString().getBytes(StandardCharsets.ISO_8859_1);
      byte[] whole = new byte[start.length + content.length];
      System.arraycopy(start, 0, whole, 0, start.length);
      System.arraycopy(content, 0, whole, start.length, content.length);
      out.write(whole);
      out.flush();
      answer = answer(socket, end);
    } catch (SocketTimeoutException error) {
      throw new MinikeeperException(verb + ": the server at " + addresses + " timed out", 0, error);
    } catch (IOException error) {
      throw noAnswer(verb, error, error instanceof ConnectException);
    }
    Map<String, Object> result = judge(verb, answer);
    if (verb.equals("go_down") && result.get("control") != null) {
      side = address((String) result.get("control"));
    } else if (verb.equals("come_up") || verb.equals("restart")) {
      side = null;
    }
    return result;
  }

  /** Reads a whole answer, until this time. A server may send it in pieces, and without end. */
  private static byte[] answer(Socket socket, long end) throws IOException {
    InputStream in = socket.getInputStream();
    byte[] answer = new byte[ANSWER_BYTES];
    int length = 0;
    while (true) {
      long restMs = (end - System.nanoTime()) / 1_000_000;
      if (restMs <= 0) throw new SocketTimeoutException();
      socket.setSoTimeout((int) Math.min(restMs, Integer.MAX_VALUE));
      int read = in.read(answer, length, answer.length - length);
      if (read < 0) return Arrays.copyOf(answer, length);
      length += read;
      if (length > ANSWER_BYTES_MAX) {
        throw new IOException("an answer of more than " + ANSWER_BYTES_MAX + " bytes, an eighth of the memory of this JVM");
      }
      if (length == answer.length) answer = Arrays.copyOf(answer, (int) Math.min(2L * length, ANSWER_BYTES_MAX + 1L));
    }
  }

  private Socket connect() throws IOException {
    InetSocketAddress down = side;
    if (down != null) {
      try {
        return connect(down);
      } catch (ConnectException error) {
        // Another caller has brought the server up.
        side = null;
      }
    }
    for (int i = 0; i < servers.length - 1; i++) {
      try {
        return connect(servers[i]);
      } catch (ConnectException error) {
        // This server of the ensemble is down, others may listen.
      }
    }
    return connect(servers[servers.length - 1]);
  }

  private static Socket connect(InetSocketAddress address) throws IOException {
    // Without a proxy, which a server of a test has no use for and whose settings take time to read.
    Socket socket = new Socket(Proxy.NO_PROXY);
    try {
      socket.connect(address, PATIENCE_MS);
      return socket;
    } catch (IOException error) {
      socket.close();
      throw error;
    }
  }

  /** Loads the classes of the first call. Asks no server. */
  static void load() {
    try (Socket socket = new Socket(Proxy.NO_PROXY)) {
      Json.parse(Json.write(Map.of(encode("a"), socket.isBound())));
      new InetSocketAddress("127.0.0.1", 1);
    } catch (IOException error) {
      // The first call reports it.
    }
  }

  /** Parses HOST:PORT. */
  static InetSocketAddress address(String text) {
    int colon = text.lastIndexOf(':');
    if (colon <= 0) throw new IllegalArgumentException("invalid address \"" + text + "\"; write HOST:PORT");
    return new InetSocketAddress(text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
  }

  /** The error of a verb. Nothing listens there, or what listens is not control. */
  private MinikeeperException noAnswer(String verb, IOException cause, boolean isRefused) {
    String question = isRefused ? "is a server running there?" : "is the server running with --control?";
    String text = verb + ": no answer from the control API at " + addresses + " (" + cause + "); " + question;
    return new MinikeeperException(text, 0, cause);
  }

  private Map<String, Object> judge(String verb, byte[] answer) {
    String all = new String(answer, StandardCharsets.UTF_8);
    int end = all.indexOf("\r\n\r\n");
    int status = status(all);
    if (end < 0 || status < 0) throw noAnswer(verb, new IOException("not an HTTP response"), false);
    String body = all.substring(end + 4);
    Object value;
    try {
      value = body.isBlank() ? Map.of() : Json.parse(body);
    } catch (IllegalArgumentException error) {
      value = null;
    }
    Map<String, Object> object = object(value);
    if (status == 200 && object != null) return object;
    Object sentence = object == null ? null : object.get("error");
    String text = sentence != null ? sentence.toString() : verb + ": status " + status + ": " + body;
    // A runner reports a failure instead of an error.
    if (status == 409 && verb.equals("verify")) throw new AssertionError(text);
    throw new MinikeeperException(text, status, null);
  }

  /** Returns the status of an HTTP response, or -1 if it is none. Without a regular expression, which starts slowly. */
  private static int status(String answer) {
    if (answer.length() < 12 || !answer.startsWith("HTTP/1.") || answer.charAt(8) != ' ') return -1;
    try {
      return Integer.parseUnsignedInt(answer.substring(9, 12));
    } catch (NumberFormatException error) {
      return -1;
    }
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> object(Object value) {
    return value instanceof Map ? (Map<String, Object>) value : null;
  }

  private static String encode(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }
}
