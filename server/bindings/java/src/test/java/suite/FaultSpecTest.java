package suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.ErrorCode;
import io.github.minikeeper.Fault;
import io.github.minikeeper.FaultHit;
import io.github.minikeeper.FaultOp;
import io.github.minikeeper.FaultSpec;
import io.github.minikeeper.MinikeeperException;
import io.github.minikeeper.MinikeeperServer;
import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** The typed faults: the server understands each, and each mistake is an error of the call that makes it. */
@Minikeeper
class FaultSpecTest {
  /** Injects a fault and returns how the server lists it. */
  private static Map<String, Object> listed(Universe universe, FaultSpec spec) {
    universe.inject(spec);
    Map<String, Object> listed = universe.faults().get(0).json();
    universe.resetFaults();
    return listed;
  }

  private static void assertListed(Universe universe, FaultSpec spec, Object... namesAndValues) {
    Map<String, Object> listed = listed(universe, spec);
    for (int i = 0; i < namesAndValues.length; i += 2) {
      assertEquals(namesAndValues[i + 1], listed.get(namesAndValues[i]), spec + ": " + namesAndValues[i]);
    }
  }

  @Test
  void everyActionOfTheServerHasItsMethod() throws Exception {
    Set<String> typed = new TreeSet<>();
    for (Method method : Fault.class.getMethods()) {
      if (!Modifier.isStatic(method.getModifiers()) || method.getReturnType() != FaultSpec.class) continue;
      Object[] given = Arrays.stream(method.getParameterTypes())
          .map(type -> type == Duration.class ? Duration.ofSeconds(1) : ErrorCode.NONODE)
          .toArray();
      typed.add(method.invoke(null, given).toString().split(",")[0]);
    }
    try (MinikeeperServer server = MinikeeperServer.builder().start()) {
      String unknown = assertThrows(MinikeeperException.class, () -> server.inject(Map.of("action", "x"))).getMessage();
      for (String action : typed) assertTrue(unknown.contains(action), action + ": " + unknown);
      // The message lists the names at its end.
      String[] known = unknown.substring(unknown.lastIndexOf("one of ") + 7).split(", ");
      assertEquals(new TreeSet<>(Arrays.asList(known)), typed);
      // Not from 127.0.0.1, from which the test asks.
      assertListed(server, Fault.refuse().from(InetAddress.getByName("127.0.0.2")), "action", "refuse", "address", "127.0.0.2");
    }
  }

  @Test
  void serverKnowsEveryOperationAndEveryError(Universe universe) {
    FaultOp[] all = FaultOp.values();
    FaultSpec spec = Fault.cut().on(all[0], Arrays.copyOfRange(all, 1, all.length));
    String names = Arrays.stream(all).map(FaultOp::toString).collect(Collectors.joining(","));
    assertListed(universe, spec, "op", names);
    for (ErrorCode code : ErrorCode.values()) assertListed(universe, Fault.error(code), "action", "error");
  }

  @Test
  void namesOfErrorsAreThoseOfZooKeeper() {
    Set<String> theirs = Arrays.stream(KeeperException.Code.values()).map(Enum::name).collect(Collectors.toSet());
    Set<String> ours = Arrays.stream(ErrorCode.values()).map(Enum::name).collect(Collectors.toSet());
    theirs.remove("OK");
    theirs.removeAll(ours);
    assertEquals(Set.of(), theirs);
  }

  @Test
  void everyConditionReachesTheServer(Universe universe) throws Exception {
    assertListed(universe, Fault.delay(Duration.ofSeconds(3)), "action", "delay", "count", null, "skip", 0L, "optional", false);
    FaultSpec base = Fault.cut().at("/q/*");
    assertListed(universe, base.on(FaultOp.GET_DATA).on(FaultOp.CREATE), "path", "/q/*", "op", "create,getData");
    assertListed(universe, base.nth(3), "skip", 2L, "count", 1L);
    assertListed(universe, base.skip(4).times(5).optional(), "skip", 4L, "count", 5L, "optional", true);
    assertListed(universe, base.withProbability(0.25, 7), "probability", 0.25, "seed", 7L);
    assertListed(universe, base.of(0x1a2b).from(InetAddress.getByName("::1")), "session", null, "address", "::1");
    assertListed(universe, base.from(new InetSocketAddress("127.0.0.1", 4711)), "address", "127.0.0.1:4711");
    assertListed(universe, base.from(new InetSocketAddress("::1", 4711)), "address", "[::1]:4711");
    assertListed(universe, base.from(InetAddress.getByName("127.0.0.1")).of(0x1a2b), "session", "0x1a2b", "address", null);
    assertListed(universe, base.of(0x1a2b).client(2), "session", null, "client", 2L, "address", null);
    assertListed(universe, base.client(2).from(InetAddress.getByName("127.0.0.1")), "client", null, "address", "127.0.0.1");
    assertListed(universe, base.client(2).of(0x1a2b), "client", null, "session", "0x1a2b");
    assertListed(universe, base.on(FaultOp.REQUEST), "op", "request");
    assertListed(universe, Fault.delayReply(Duration.ofSeconds(3)), "action", "delay-reply", "delay_ms", 3_000L);
    assertListed(universe, Fault.delayEvents(Duration.ofMillis(1)).at("/q"), "action", "delay-events", "delay_ms", 1L);
    assertListed(universe, Fault.pause(Duration.ofMillis(5)), "action", "pause", "delay_ms", 5L);
    assertListed(universe, Fault.outage(Duration.ofSeconds(2)), "action", "outage", "delay_ms", 2_000L);
    assertListed(universe, Fault.outage(), "action", "outage", "delay_ms", null);
    assertListed(universe, Fault.clientOutage(Duration.ofSeconds(2)), "action", "client-outage", "delay_ms", 2_000L);
    assertListed(universe, Fault.clientOutage(), "action", "client-outage", "delay_ms", null);
    assertListed(universe, Fault.crash(), "action", "crash");
    assertListed(universe, Fault.rollback().on(FaultOp.SET_DATA), "action", "rollback", "op", "setData");
    assertListed(universe, Fault.loseReply().at("/q/").on(FaultOp.CREATE), "path", "/q/");
    // The methods have returned copies.
    assertEquals("cut, path /q/*", base.toString());
  }

  @Test
  void faultActsOnWhatItNames(Universe universe) throws Exception {
    try (Client client = new Client(universe.connectString()).connected();
        Client other = new Client(universe.connectString()).connected()) {
      client.curator.create().forPath("/a");
      // The server knows the universe of a client when it has sent a path.
      other.exists("/a");
      FaultSpec spec = Fault.error(ErrorCode.NOAUTH).on(FaultOp.SET_DATA).at("/a").of(client.session()).nth(2);
      try (Fault fault = universe.inject(spec)) {
        client.curator.setData().forPath("/a", "1".getBytes());
        other.curator.setData().forPath("/a", "2".getBytes());
        assertThrows(KeeperException.NoAuthException.class, () -> client.curator.setData().forPath("/a", "3".getBytes()));
        client.curator.setData().forPath("/a", "4".getBytes());
        assertEquals(1, fault.hits());
      }
    }
  }

  @Test
  void lastHitTellsTheRequest(Universe universe) throws Exception {
    try (Client client = new Client(universe.connectString()).connected()) {
      try (Fault seen = universe.inject(Fault.trigger().on(FaultOp.REQUEST).client(1).at("/a"))) {
        assertTrue(seen.lastHit().isEmpty());
        client.curator.create().forPath("/a");
        client.curator.getData().forPath("/a");
        FaultHit hit = seen.lastHit().orElseThrow();
        assertEquals("getData", hit.op());
        assertEquals("/a", hit.path());
        assertEquals(client.session(), hit.session().getAsLong());
        assertTrue(hit.xid().getAsLong() > 0);
        assertEquals(2, seen.hits());
      }
      try (Fault cut = universe.inject(Fault.cutAfter().on(FaultOp.SET_DATA).once())) {
        client.curator.setData().forPath("/a", "1".getBytes());
        assertEquals("setData", cut.lastHit().orElseThrow().op());
      }
      client.await(ConnectionState.SUSPENDED);
      long session = client.session();
      try (Fault expired = universe.inject(Fault.expire().on(FaultOp.DELETE).once())) {
        client.curator.delete().forPath("/a");
        assertEquals(session, expired.lastHit().orElseThrow().session().getAsLong());
      }
      client.await(ConnectionState.LOST);
    }
  }

  @Test
  void mistakeIsAnErrorOfItsCall(Universe universe) {
    Map<Executable, String> cases = new LinkedHashMap<>();
    cases.put(() -> Fault.cut().at("a"), "path pattern \"a\": must begin with \"/\" or \"*\" to match a path");
    cases.put(() -> Fault.cut().at("/a//b"), "path pattern \"/a//b\": has an empty name (//), which no path can have");
    cases.put(() -> Fault.cut().at("/a/../b"), "path pattern \"/a/../b\": has a name . or .., which no path can have");
    cases.put(() -> Fault.cut().at("/\0"), "path pattern \"/\0\": has a null character, which no path can have");
    String tooLong = "/" + "ä".repeat(512);
    cases.put(() -> Fault.cut().at(tooLong), "path pattern \"" + tooLong.substring(0, 100) + "...\": longer than 1024 bytes");
    cases.put(() -> Fault.delay(Duration.ofNanos(999_999)), "action \"delay\": needs a duration of at least 1 ms, not 999999 ns");
    cases.put(() -> Fault.delay(Duration.ofSeconds(-1)), "action \"delay\": needs a duration of at least 1 ms, not -1000000000 ns");
    cases.put(() -> Fault.delayReply(Duration.ZERO), "action \"delay-reply\": needs a duration of at least 1 ms, not 0 ns");
    cases.put(() -> Fault.delayEvents(Duration.ZERO), "action \"delay-events\": needs a duration of at least 1 ms, not 0 ns");
    cases.put(
        () -> Fault.delayEvents(Duration.ofSeconds(1)).on(FaultOp.CREATE),
        "action \"delay-events\": cannot be restricted to an operation: an event has none");
    cases.put(() -> Fault.cut().client(0), "client 0: the first one is number 1");
    cases.put(() -> Fault.refuse().client(1), "action \"refuse\": cannot be restricted to a session: it is not known yet");
    cases.put(() -> Fault.cut().times(0), "count 0: the fault would never act; must be at least 1");
    cases.put(() -> Fault.cut().skip(-1), "skip -1: must not be negative");
    cases.put(() -> Fault.cut().nth(0), "match 0: the first one is number 1");
    cases.put(() -> Fault.cut().withProbability(1.5, 0), "probability 1.5: outside the range of 0 to 1");
    cases.put(() -> Fault.cut().withProbability(Double.NaN, 0), "probability NaN: outside the range of 0 to 1");
    cases.put(() -> Fault.cut().withProbability(0.5, -1), "seed -1: must not be negative");
    cases.put(() -> Fault.cut().from(InetSocketAddress.createUnresolved("host", 1)), "not resolved; use an IP address");
    cases.put(() -> Fault.refuse().at("/a"), "action \"refuse\": cannot be restricted to a path: there is no request yet");
    cases.put(() -> Fault.refuse().on(FaultOp.PING), "action \"refuse\": cannot be restricted to an operation");
    cases.put(() -> Fault.refuse().of(1), "action \"refuse\": cannot be restricted to a session: it is not known yet");
    cases.put(() -> Fault.holdEvents().on(FaultOp.PING), "action \"hold-events\": cannot be restricted to an operation");
    // A later call could have mended these.
    cases.put(() -> universe.inject(Fault.cut().at("/q/").on(FaultOp.DELETE)), "ends with a slash");
    cases.put(
        () -> universe.inject(Fault.error(ErrorCode.NOAUTH).on(FaultOp.CONNECT)), "cannot be restricted to the handshake");
    cases.put(
        () -> universe.inject(Fault.clientOutage().on(FaultOp.CONNECT)),
        "action \"client-outage\": cannot be restricted to the handshake: the client has no session yet");
    cases.put(() -> Fault.outage(Duration.ZERO), "action \"outage\": needs a duration of at least 1 ms, not 0 ns");
    cases.put(
        () -> universe.inject(Fault.cut().client(1).on(FaultOp.CONNECT)),
        "action \"cut\": cannot be restricted to the handshakes of a client: its number is not known yet");
    cases.forEach((call, words) -> {
      String message = assertThrows(IllegalArgumentException.class, call, words).getMessage();
      assertTrue(message.contains(words), message);
    });
    assertThrows(NullPointerException.class, () -> Fault.error(null));
    assertEquals(0, universe.faults().size());
  }
}
