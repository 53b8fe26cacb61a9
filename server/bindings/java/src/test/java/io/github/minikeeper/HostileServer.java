package io.github.minikeeper;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** A server that answers every verb of the control API with the same text, again and again if it is to be endless. */
public final class HostileServer implements AutoCloseable {
  private final ServerSocket listener;
  private final byte[] answer;
  private final boolean isEndless;

  private HostileServer(String answer, boolean isEndless) throws IOException {
    this.answer = answer.getBytes(StandardCharsets.UTF_8);
    this.isEndless = isEndless;
    listener = new ServerSocket(0, 10, InetAddress.getByName("127.0.0.1"));
    Thread thread = new Thread(this::serve, "hostile server");
    thread.setDaemon(true);
    thread.start();
  }

  /** Answers with these fields. */
  public static HostileServer answering(Map<String, Object> fields) throws IOException {
    return new HostileServer("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + Json.write(fields), false);
  }

  /** Sends a text again and again, for as long as the client reads. */
  static HostileServer endless(String text) throws IOException {
    return new HostileServer(text, true);
  }

  public Universe universe() {
    return Universe.at("127.0.0.1:" + listener.getLocalPort(), null);
  }

  private void serve() {
    while (!listener.isClosed()) {
      try (Socket socket = listener.accept()) {
        socket.getInputStream().read(new byte[64 * 1024]);
        OutputStream out = socket.getOutputStream();
        do {
          out.write(answer);
        } while (isEndless);
      } catch (IOException error) {
        // The client reads no more, or this is closed.
      }
    }
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }
}
