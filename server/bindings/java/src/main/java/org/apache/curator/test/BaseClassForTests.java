package org.apache.curator.test;

import io.github.minikeeper.junit.TestingServerExtension;
import java.io.IOException;
import java.net.BindException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Replaces Curator's class of the same name: the base class of tests with a server of their own, which runs in the field
 * {@link #server} from before each test until after it.
 *
 * <p>Like Curator's, it sets the system properties that make Curator quiet about lost connections, remove watchers in the
 * foreground, and check that no watcher remains. Unlike Curator's class, it tells the story of a test that fails.
 */
@ExtendWith(TestingServerExtension.class)
public class BaseClassForTests {
  // The values of the constants of Curator's DebugUtils, so that this class also works without Curator.
  private static final String QUIET = "curator-dont-log-connection-problems";
  private static final String REMOVE_WATCHERS = "curator-remove-watchers-in-foreground";
  private static final String CHECK_WATCHERS = "curator-validate-namespace-watcher-map-empty";

  /** The logger of the test class. */
  protected final Logger log = LoggerFactory.getLogger(getClass());

  /** The server of the running test; null between tests. */
  protected volatile TestingServer server;

  /** For subclasses. */
  public BaseClassForTests() {}

  /** Sets Curator's properties and calls {@link #createServer}, a second time if it fails for want of a port. */
  @BeforeEach
  public void setup() throws Exception {
    for (String property : new String[] {QUIET, REMOVE_WATCHERS, CHECK_WATCHERS}) System.setProperty(property, "true");
    try {
      createServer();
    } catch (FailedServerStartException error) {
      log.warn("the server did not start, trying again", error);
      closeServer();
      createServer();
    }
  }

  /** Starts the server unless there is one; a subclass may start another kind, or none. */
  protected void createServer() throws Exception {
    if (server != null) return;
    try {
      server = new TestingServer();
    } catch (BindException error) {
      throw new FailedServerStartException(error);
    }
  }

  /** Creates and starts an ensemble, a second time if it fails for want of ports. The caller closes it. */
  public TestingCluster createAndStartCluster(int qty) throws Exception {
    TestingCluster cluster = new TestingCluster(qty);
    try {
      cluster.start();
      return cluster;
    } catch (FailedServerStartException error) {
      log.warn("the ensemble did not start, trying again", error);
      cluster.close();
    }
    TestingCluster another = new TestingCluster(qty);
    another.start();
    return another;
  }

  /** Restarts the server, if there is one. It keeps its port, data and sessions. */
  protected void restartServer() throws Exception {
    if (server != null) server.restart();
  }

  /** Closes the server and clears Curator's properties about watchers. */
  @AfterEach
  public void teardown() throws Exception {
    System.clearProperty(CHECK_WATCHERS);
    System.clearProperty(REMOVE_WATCHERS);
    closeServer();
  }

  /** Closes the server, if there is one. An error is logged and does not fail the test. */
  protected void closeServer() {
    TestingServer closed = server;
    server = null;
    try {
      if (closed != null) closed.close();
    } catch (IOException error) {
      log.error("cannot close the server", error);
    }
  }
}
