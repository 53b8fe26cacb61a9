package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.curator.test.BaseClassForTests;
import org.apache.curator.test.TestingServer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests without an annotation of ours that fail on purpose, which {@link StoryTest} runs in another process. */
class OnPurposeWithTestingServer {
  private TestingServer server;

  @BeforeEach
  void start() throws Exception {
    server = new TestingServer();
  }

  @AfterEach
  void stop() throws Exception {
    server.close();
  }

  @Test
  void fails() throws Exception {
    server.minikeeper().create("/paper", "A4");
    assertEquals("A3", server.minikeeper().get("/paper").text());
  }

  @Test
  void passes() throws Exception {
    assertEquals("zookeeper", server.minikeeper().children("/").get(0));
  }

  /** The server of this test has stopped when it fails. */
  static class InTry {
    @Test
    void fails() throws Exception {
      try (TestingServer own = new TestingServer()) {
        own.minikeeper().create("/paper", "A4");
        assertEquals("A3", own.minikeeper().get("/paper").text());
      }
    }
  }

  static class OfTheBaseClass extends BaseClassForTests {
    @Test
    void fails() {
      server.minikeeper().create("/paper", "A4");
      assertEquals("A3", server.minikeeper().get("/paper").text());
    }
  }
}
