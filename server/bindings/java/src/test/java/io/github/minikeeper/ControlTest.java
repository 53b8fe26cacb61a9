package io.github.minikeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** What the client of the control API makes of a server that is not what it says. */
public class ControlTest {
  /** An answer without an end used to be read until the memory was full. */
  @Test
  void endlessAnswerIsReadUpToALimit() throws Exception {
    String filler = "x".repeat(1 << 20);
    for (String text : List.of(filler, "HTTP/1.1 200 OK\r\n\r\n{\"dump\":\"" + filler, "HTTP/1.1 200 OK\r\nX: " + filler + "\r\n")) {
      try (HostileServer server = HostileServer.endless(text)) {
        MinikeeperException error = assertThrows(MinikeeperException.class, () -> server.universe().dump());
        assertEquals(0, error.status());
        String limit = "an answer of more than " + Control.ANSWER_BYTES_MAX + " bytes, an eighth of the memory of this JVM";
        assertTrue(error.getMessage().contains(limit), error::getMessage);
      }
    }
  }
}
