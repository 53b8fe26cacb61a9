package suite;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.ConnectException;
import java.net.Socket;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.curator.test.InstanceSpec;
import org.apache.curator.test.TestingCluster;
import org.apache.curator.test.TestingServer;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The replacement of Curator's TestingServer: start and stop, port, directory. */
class TestingServerTest {
  @TempDir
  File folder;

  private static boolean listens(int port) throws Exception {
    try (Socket socket = new Socket("127.0.0.1", port)) {
      return socket.isConnected();
    } catch (ConnectException error) {
      return false;
    }
  }

  private static void create(TestingServer server, String path) throws Exception {
    try (Client client = new Client(server.getConnectString()).connected()) {
      client.curator.create().forPath(path, "x".getBytes());
    }
  }

  @Test
  void restartKeepsData() throws Exception {
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected()) {
      client.curator.create().creatingParentsIfNeeded().forPath("/one/two", "x".getBytes());
      String before = server.getConnectString();
      server.restart();
      assertEquals(before, server.getConnectString());
      assertArrayEquals("x".getBytes(), client.curator.getData().forPath("/one/two"));
    }
  }

  @Test
  void stoppedServerRefusesConnectionsAndStartsAgainOnItsPort() throws Exception {
    try (TestingServer server = new TestingServer()) {
      int port = server.getPort();
      server.stop();
      assertFalse(listens(port));
      server.start();
      assertEquals(port, server.getPort());
      assertTrue(listens(port));
    }
  }

  @Test
  void restartStartsAStoppedServer() throws Exception {
    try (TestingServer server = new TestingServer()) {
      server.stop();
      server.restart();
      assertTrue(listens(server.getPort()));
    }
  }

  @Test
  void startOfARunningServerAndStopOfAStoppedOneChangeNothing() throws Exception {
    try (TestingServer server = new TestingServer()) {
      create(server, "/kept");
      server.start();
      assertEquals("x", server.minikeeper().get("/kept").text());
      server.stop();
      server.stop();
      assertFalse(listens(server.getPort()));
    }
  }

  @Test
  void addressIsKnownBeforeADeferredStart() throws Exception {
    try (TestingServer server = new TestingServer(false)) {
      int port = server.getPort();
      assertFalse(listens(port));
      assertThrows(IllegalStateException.class, server::minikeeper);
      // A client may start before the server.
      try (Client client = new Client(server.getConnectString())) {
        server.start();
        client.connected();
        assertEquals(port, server.getPort());
      }
    }
  }

  @Test
  void customPort() throws Exception {
    int port = InstanceSpec.getRandomPort();
    try (TestingServer server = new TestingServer(port)) {
      assertEquals(port, server.getPort());
      assertEquals("127.0.0.1:" + port, server.getConnectString());
      assertTrue(listens(port));
    }
  }

  @Test
  void portIsFreeAgainAfterClose() throws Exception {
    int port;
    try (TestingServer server = new TestingServer();
        Client client = new Client(server.getConnectString()).connected()) {
      port = server.getPort();
    }
    try (TestingServer server = new TestingServer(port, true);
        Client client = new Client(server.getConnectString()).connected()) {
      // The second server has its own directory, so nothing of the first remains.
      assertEquals(Set.of("zookeeper"), Set.copyOf(client.curator.getChildren().forPath("/")));
    }
  }

  @Test
  void takenPortSaysSo() throws Exception {
    try (TestingServer server = new TestingServer();
        TestingServer second = new TestingServer(server.getPort(), false)) {
      Exception error = assertThrows(Exception.class, second::start);
      assertTrue(error.getMessage().contains("cannot listen on 127.0.0.1:" + server.getPort()), error.getMessage());
    }
  }

  @Test
  void twoServersAtOnceShareNothing() throws Exception {
    try (TestingServer one = new TestingServer();
        TestingServer two = new TestingServer();
        Client first = new Client(one.getConnectString()).connected();
        Client second = new Client(two.getConnectString()).connected()) {
      assertNotEquals(one.getPort(), two.getPort());
      first.curator.create().forPath("/only-here");
      assertFalse(second.exists("/only-here"));
      two.stop();
      assertTrue(first.exists("/only-here"));
    }
  }

  @Test
  void tempDirectoryIsCreatedAndDeletedWithTheServer() throws Exception {
    TestingServer server = new TestingServer();
    File made = server.getTempDirectory();
    assertTrue(made.isDirectory());
    server.stop();
    assertTrue(made.isDirectory(), "stop deletes nothing");
    server.close();
    assertFalse(made.exists());
  }

  @Test
  void givenTempDirectoryIsUsedAndDeletedWithTheServer() throws Exception {
    File given = new File(folder, "data");
    TestingServer server = new TestingServer(-1, given);
    assertEquals(given, server.getTempDirectory());
    create(server, "/kept");
    server.stop();
    assertTrue(given.list().length > 0);
    server.close();
    assertFalse(given.exists());
  }

  @Test
  void directoryOfASpecMaySurviveTheServer() throws Exception {
    File given = new File(folder, "kept");
    InstanceSpec spec = InstanceSpec.builder().withDataDirectory(given, false).withPort(0).build();
    try (TestingServer server = new TestingServer(spec, true)) {
      create(server, "/kept");
    }
    try (TestingServer server = new TestingServer(spec, true)) {
      assertEquals("x", server.minikeeper().get("/kept").text());
    }
  }

  @Test
  void specSetsTickAndOtherSettings() throws Exception {
    InstanceSpec spec = InstanceSpec.builder()
        .withPort(0)
        .withTickTime(100)
        .withCustomProperties(Map.of("extendedTypesEnabled", "false"))
        .build();
    try (TestingServer server = new TestingServer(spec, true);
        Client client = new Client(server.getConnectString()).connected()) {
      // 20 ticks at most.
      assertEquals(2_000, client.zooKeeper().getSessionTimeout());
      assertThrows(
          Exception.class,
          () -> client.curator.create().withTtl(1_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/ttl"));
    }
  }

  /** Curator grants 1 to 20 ticks of a second, or of the spec; here it used to be 2 to 20 ticks of 3 s, as in a ZooKeeper. */
  @Test
  void sessionTimeoutsAreThoseOfCurator() throws Exception {
    try (TestingServer server = new TestingServer(); TestingCluster cluster = new TestingCluster(3)) {
      cluster.start();
      for (String connectString : new String[] {server.getConnectString(), cluster.getConnectString()}) {
        assertEquals(1_000, granted(connectString, 1));
        assertEquals(1_000, granted(connectString, 1_000));
        assertEquals(1_001, granted(connectString, 1_001));
        assertEquals(20_000, granted(connectString, 20_000));
        assertEquals(20_000, granted(connectString, 60_000));
      }
    }
    InstanceSpec spec = InstanceSpec.builder().withPort(0).withTickTime(150).build();
    try (TestingServer server = new TestingServer(spec, true)) {
      assertEquals(150, granted(server.getConnectString(), 1));
      assertEquals(3_000, granted(server.getConnectString(), 60_000));
    }
    Map<String, String> lines = Map.of("tickTime", "200", "minSessionTimeout", "300", "maxSessionTimeout", "70000");
    spec = InstanceSpec.builder().withPort(0).withTickTime(150).withCustomProperties(lines).build();
    try (TestingServer server = new TestingServer(spec, true)) {
      assertEquals(300, granted(server.getConnectString(), 1));
      assertEquals(60_000, granted(server.getConnectString(), 60_000));
    }
  }

  /** The timeout that a server grants a session that asks for this one. A client would wait too short for its reply. */
  private static int granted(String connectString, int timeoutMs) throws Exception {
    String[] address = connectString.split("[,:]");
    try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
      DataOutputStream out = new DataOutputStream(socket.getOutputStream());
      // A connect request: version, last zxid, timeout, session, password, whether read-only.
      byte[] request = ByteBuffer.allocate(45).putInt(0).putLong(0).putInt(timeoutMs).putLong(0).putInt(16).array();
      out.writeInt(request.length);
      out.write(request);
      DataInputStream in = new DataInputStream(socket.getInputStream());
      in.readInt(); // length
      in.readInt(); // version
      return in.readInt();
    }
  }

  @Test
  void closeMayBeRepeatedAndRestartAfterCloseFails() throws Exception {
    TestingServer server = new TestingServer();
    int port = server.getPort();
    server.close();
    server.close();
    assertFalse(listens(port));
    assertThrows(IllegalStateException.class, server::restart);
    server.start();
    assertFalse(listens(port), "a closed server does not start");
  }

  /** Compares our classes with those of Curator's unchanged jar. */
  @Test
  void everyMemberOfCuratorsClassesExists() throws Exception {
    URL jar = new File(System.getProperty("curator.test.jar")).toURI().toURL();
    try (URLClassLoader theirs = new URLClassLoader(new URL[] {jar}, new WithoutOurs())) {
      for (String name : new String[] {
        "TestingServer", "TestingCluster", "TestingZooKeeperServer", "InstanceSpec", "Timing", "KillSession", "DirectoryUtils", "BaseClassForTests",
        "FailedServerStartException", "WatchersDebug", "DelegatingExecutorService",
        "ExecuteCalledWatchingExecutorService", "compatibility.CuratorTestBase", "compatibility.Timing2"
      }) {
        Class<?> original = theirs.loadClass("org.apache.curator.test." + name);
        Set<String> missing = members(original);
        missing.removeAll(members(Class.forName("org.apache.curator.test." + name)));
        // These need classes of ZooKeeper's server.
        missing.removeIf(member -> member.contains("QuorumConfigBuilder"));
        assertEquals(Set.of(), missing, name);
      }
    }
  }

  /** Asks our classes and those of Curator's unchanged jar for the same times. */
  @Test
  void timesAreThoseOfCurator() throws Exception {
    URL jar = new File(System.getProperty("curator.test.jar")).toURI().toURL();
    try (URLClassLoader theirs = new URLClassLoader(new URL[] {jar}, new WithoutOurs())) {
      for (String name : new String[] {"Timing", "compatibility.Timing2"}) {
        Class<?> original = theirs.loadClass("org.apache.curator.test." + name);
        Class<?> ours = Class.forName("org.apache.curator.test." + name);
        for (Object[] given : new Object[][] {{}, {0.3}, {2.5, 3}, {1500L, TimeUnit.MILLISECONDS}, {7L, TimeUnit.SECONDS, 2}}) {
          Map<String, Object> wanted = times(original, given);
          Map<String, Object> found = times(ours, given);
          // Curator 5.9 made the sessions of Timing as long as those of Timing2.
          if (name.equals("Timing")) wanted.keySet().removeIf(time -> time.endsWith("session"));
          found.keySet().retainAll(wanted.keySet());
          assertEquals(wanted, found, () -> name + Arrays.toString(given));
        }
      }
    }
  }

  /** Every time that a class computes, also after each method that returns another one of its kind. */
  private static Map<String, Object> times(Class<?> type, Object... given) throws Exception {
    Class<?>[] types = Arrays.stream(given).map(TestingServerTest::parameterType).toArray(Class<?>[]::new);
    Object timing = type.getConstructor(types).newInstance(given);
    Map<String, Object> times = new TreeMap<>();
    for (Method method : type.getMethods()) {
      if (method.getDeclaringClass() == Object.class || method.getParameterCount() > 0) continue;
      if (method.getReturnType() == int.class) times.put(method.getName(), method.invoke(timing));
      if (method.getReturnType() != type) continue;
      Object other = method.invoke(timing);
      for (String time : new String[] {"milliseconds", "seconds", "session", "connection"}) {
        times.put(method.getName() + "." + time, type.getMethod(time).invoke(other));
      }
      Object waiting = type.getMethod("forWaiting").invoke(other);
      times.put(method.getName() + ".forWaiting", type.getMethod("milliseconds").invoke(waiting));
    }
    return times;
  }

  private static Class<?> parameterType(Object value) {
    if (value instanceof Double) return double.class;
    if (value instanceof Integer) return int.class;
    return value instanceof Long ? long.class : TimeUnit.class;
  }

  /** Finds the client's classes, which Curator's refer to, but not ours of the same name. */
  private static final class WithoutOurs extends ClassLoader {
    WithoutOurs() {
      super(null);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
      if (name.startsWith("org.apache.curator.test.")) throw new ClassNotFoundException(name);
      return TestingServerTest.class.getClassLoader().loadClass(name);
    }
  }

  /** The members of a class, also those that it inherits from another one of the package. */
  private static Set<String> members(Class<?> type) {
    Stream<Method> methods = Arrays.stream(type.getDeclaredMethods());
    for (Class<?> base = type.getSuperclass(); base.getName().startsWith("org.apache"); base = base.getSuperclass()) {
      methods = Stream.concat(methods, Arrays.stream(base.getDeclaredMethods()));
    }
    return Stream.concat(methods, Arrays.stream(type.getDeclaredConstructors()))
        .filter(member -> (member.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0 && !member.isSynthetic())
        .map(TestingServerTest::signature)
        .collect(Collectors.toCollection(TreeSet::new));
  }

  private static String signature(Executable member) {
    String types = Arrays.stream(member.getParameterTypes()).map(Class::getName).collect(Collectors.joining(","));
    return member.getName() + "(" + types + ")";
  }
}
