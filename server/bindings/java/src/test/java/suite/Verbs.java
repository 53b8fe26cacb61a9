package suite;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.minikeeper.MinikeeperException;
import java.io.InputStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;

/** Skips tests of verbs that the program under test lacks. */
final class Verbs {
  private static final boolean ALL = System.getenv("MINIKEEPER_ALL_VERBS") != null;

  private Verbs() {}

  /** Skips a test if the program lacks one of its verbs, unless MINIKEEPER_ALL_VERBS is set. */
  static void need(String connectString, String... verbs) throws Exception {
    String address = connectString.split("/")[0];
    String description;
    try (InputStream in = new URL("http://" + address + "/v1/openapi.json").openStream()) {
      description = new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
    for (String verb : verbs) {
      assumeTrue(ALL || description.contains("\"/v1/" + verb + "\""), "the program has no verb " + verb);
    }
  }

  /** Skips a test if an older program lacks the selector; otherwise throws. */
  static void skipIfNotYet(MinikeeperException error) {
    assumeTrue(ALL || error.status() != 409 || !error.getMessage().contains("yet"), error.getMessage());
    throw error;
  }
}
