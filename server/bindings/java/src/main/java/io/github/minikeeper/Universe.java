package io.github.minikeeper;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;

/**
 * A tree with its own sessions, clock and faults, and every verb of a test. A {@link MinikeeperServer} is its own first
 * one.
 *
 * <p>Every verb throws {@link MinikeeperException} with the server's sentence if it cannot be done, and may be called from
 * any thread.
 */
public class Universe extends Verbs {
  private final String name;
  private String connectString;
  private Control control;

  Universe(String connectString, String token, String name) {
    this.name = name;
    if (connectString != null) connect(connectString, token);
  }

  /** The universe of a server that was started with {@code --control}. The token may be null. */
  public static Universe at(String connectString, String token) {
    return new Universe(connectString, token, null);
  }

  final void connect(String connectString, String token) {
    String address = connectString.split("/", 2)[0];
    InetSocketAddress socket = Control.address(address);
    this.connectString = connectString;
    this.control = new Control(socket.getHostString(), socket.getPort(), token, name);
  }

  @Override
  final Control control() {
    if (control == null) throw new MinikeeperException("the server does not run: call start()");
    return control;
  }

  @Override
  final Universe universe(String name, String connectString) {
    return new Universe(connectString, control.token, name);
  }

  @Override
  final Fault fault(long id) {
    return new Fault(this, id);
  }

  /** What a ZooKeeper client connects to: HOST:PORT, and the chroot of a universe that has one. */
  public String connectString() {
    control();
    return connectString;
  }

  /** The port its server listens on. */
  public int port() {
    return control().port;
  }

  /** Advance the clock as if no client had sent anything meanwhile: connected sessions expire too. */
  public void advanceStrictly(Duration by) {
    advance(by, true);
  }

  /** Remove a fault: see {@link Fault#remove}. */
  @Override
  public long removeFault(Fault fault) {
    return fault.remove();
  }

  final long removeNow(Fault fault) {
    return super.removeFault(fault);
  }

  /** The tree, in the form {@link #seed(Map)} takes. */
  @Override
  public Map<String, Object> exportTree() {
    return Control.object(exportTree(TreeFormat.JSON));
  }

  /** The tree, in the form {@link #seed(String)} takes. */
  public String exportTreeAsYaml() {
    return (String) exportTree(TreeFormat.YAML);
  }

  /** Drop a universe: close its connections and delete its state. */
  @Override
  public void dropUniverse(String name) {
    if (this.name == null) {
      super.dropUniverse(name);
    } else {
      // The server drops it: a universe does not drop itself.
      at(control().host + ":" + control().port, control().token).dropUniverse(name);
    }
  }

  @Override
  public String toString() {
    return getClass().getSimpleName() + " " + connectString;
  }
}
