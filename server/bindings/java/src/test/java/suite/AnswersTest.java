package suite;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.Advice;
import io.github.minikeeper.Contender;
import io.github.minikeeper.EnsembleServer;
import io.github.minikeeper.Fault;
import io.github.minikeeper.FaultOp;
import io.github.minikeeper.InjectedFault;
import io.github.minikeeper.JournalEntry;
import io.github.minikeeper.Lock;
import io.github.minikeeper.Locks;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Mode;
import io.github.minikeeper.Stat;
import io.github.minikeeper.Universe;
import io.github.minikeeper.ZnodeChange;
import io.github.minikeeper.junit.Minikeeper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.junit.jupiter.api.Test;

/** What verbs return has types. */
@Minikeeper
class AnswersTest {
  private static long session(CuratorFramework client) throws Exception {
    return client.getZookeeperClient().getZooKeeper().getSessionId();
  }

  @Test
  void locksHaveContendersAndPrintAsText(Universe universe, CuratorFramework client) throws Exception {
    InterProcessMutex mutex = new InterProcessMutex(client, "/locks/printer");
    mutex.acquire();
    Locks locks = universe.locks();
    Lock lock = locks.locks().get(0);
    assertEquals("/locks/printer", lock.path());
    assertEquals("mutex", lock.kind());
    assertEquals(List.of(), lock.waiters());
    assertEquals(List.of(), lock.warnings());
    assertEquals(OptionalLong.empty(), lock.maxLeases());
    assertEquals(1, lock.history().acquisitions());
    Contender holder = lock.holders().get(0);
    assertEquals(OptionalLong.of(session(client)), holder.session());
    assertTrue(holder.isConnected() && holder.data().length == holder.dataLength());
    assertTrue(locks.toString().startsWith("mutex /locks/printer (curator)\n"), locks.toString());
    mutex.release();
  }

  @Test
  void adviceHasFindingsAndPrintsAsText(Universe universe, CuratorFramework client) throws Exception {
    client.create().withMode(org.apache.zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/lock-");
    Advice advice = universe.advise(Map.of());
    assertEquals("unprotected-sequential", advice.findings().get(0).rule());
    assertEquals(1, advice.findings().get(0).entries().size());
    assertEquals(advice.text(), advice.toString());
    assertTrue(advice.toString().contains(advice.findings().get(0).remedy()), advice.toString());
  }

  @Test
  void faultsHaveTheirHits(Universe universe, CuratorFramework client) throws Exception {
    universe.inject(Fault.delayReply(Duration.ofMillis(1)).on(FaultOp.CREATE).at("/a"));
    InjectedFault before = universe.faults().get(0);
    assertEquals(Duration.ofMillis(1), before.delay());
    assertNull(before.lastHit());
    client.create().forPath("/a");
    InjectedFault fault = universe.faults().get(0);
    assertEquals(1, fault.hits());
    assertEquals("/a", fault.lastHit().path());
    assertEquals(OptionalLong.of(session(client)), fault.lastHit().session());
    assertEquals(fault, universe.faults().get(0));
    assertEquals(fault.lastHit(), universe.fault(fault.fault()).lastHit().orElseThrow());
  }

  @Test
  void serversHaveModesAndSessions() throws Exception {
    try (MinikeeperServer server = MinikeeperServer.builder().servers(2).start()) {
      server.setServer(2, Mode.CUT_OFF);
      try (Client client = new Client(server.connectString().split(",")[0]).connected()) {
        EnsembleServer first = server.servers().get(0);
        assertEquals(List.of(client.zooKeeper().getSessionId()), first.sessions());
        assertTrue(first.isLeader() && first.id() == 1 && first.mode() == Mode.UP);
        assertEquals(Mode.CUT_OFF, server.servers().get(1).mode());
      }
    }
  }

  @Test
  void textIsData(Universe universe) {
    assertEquals("/a", universe.create("/a", "ä"));
    assertEquals("/b", universe.create("/b", new byte[] {-1}));
    assertArrayEquals(new byte[] {-1}, universe.get("/b").data());
    assertEquals("ä", universe.get("/a").text());
    assertEquals(1, universe.set("/a", "b"));
    Stat stat = universe.get("/a").stat();
    assertEquals(1, stat.version());
    assertEquals(0, stat.ephemeralOwner());
    assertEquals(1, stat.dataLength());
  }

  @Test
  void changesAreFromASnapshot(Universe universe) {
    long before = universe.snapshot();
    universe.create("/a", "1");
    ZnodeChange change = universe.changesSince(before).changes().get(0);
    assertEquals(List.of("/a", "created", "1"), List.of(change.path(), change.change(), change.after()));
    assertNull(change.before());
    assertTrue(universe.snapshots().get(0).isThere());
  }

  /** A new user's first assertion: ZooKeeper has /zookeeper too. */
  @Test
  void emptyTreeHasTheZnodeOfTheServer(Universe universe) {
    assertEquals(List.of("zookeeper"), universe.children("/"));
    assertEquals(Map.of(), universe.exportTree());
  }

  @Test
  void journalThatDiffersIsAFailedAssertion(Universe universe, CuratorFramework client) throws Exception {
    client.create().forPath("/a");
    assertEquals(1, universe.verify(Map.of("path", "/a", "op", "create2")));
    AssertionError failure = assertThrows(AssertionError.class, () -> universe.verify(Map.of("path", "/a", "exactly", 3)));
    assertTrue(failure.getMessage().contains("/a"), failure.getMessage());
    MinikeeperException wrong =
        assertThrows(MinikeeperException.class, () -> universe.verify(Map.of("exactly", 1, "at_most", 2)));
    assertEquals(400, wrong.status());
    JournalEntry entry = universe.journal(Map.of("path", "/a", "kind", "request")).entries().get(0);
    assertEquals(OptionalLong.of(session(client)), entry.session());
    assertEquals("/a", entry.path());
  }
}
