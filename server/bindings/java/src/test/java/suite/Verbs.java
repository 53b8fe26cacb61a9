package suite;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.minikeeper.MinikeeperException;
import java.io.InputStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;

/** Which verbs the program under test has. */
final class Verbs {
  private static final boolean ALL = System.getenv("MINIKEEPER_ALL_VERBS") != null;

  private Verbs() {}

  /** Skips a test if the program is older than one of its verbs; with MINIKEEPER_ALL_VERBS it may not be. */
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

  /** Names other than a session's id came later than the verbs. */
  static void skipIfNotYet(MinikeeperException error) {
    assumeTrue(ALL || error.status() != 409 || !error.getMessage().contains("yet"), error.getMessage());
    throw error;
  }
}
