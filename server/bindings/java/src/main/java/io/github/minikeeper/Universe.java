package io.github.minikeeper;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A tree with its own sessions, clock and faults, and every verb. A {@link MinikeeperServer} is also its own first
 * universe.
 *
 * <p>Every verb throws {@link MinikeeperException} with the server's message if it fails, and may be called from any
 * thread.
 */
public class Universe extends Verbs {
  private final String name;
  private String connectString;
  private Control control;

  Universe(String connectString, String token, String name) {
    this.name = name;
    if (connectString != null) connect(connectString, token);
  }

  /** Returns the universe of a running server with {@code --control}. The token may be null. */
  public static Universe at(String connectString, String token) {
    return new Universe(connectString, token, null);
  }

  final void connect(String connectString, String token) {
    this.connectString = connectString;
    this.control = new Control(connectString.split("/", 2)[0], token, name);
  }

  @Override
  final Control control() {
    if (control == null) throw new MinikeeperException("the server is not running: call start()");
    return control;
  }

  @Override
  final Universe universe(String name, String connectString) {
    return new Universe(connectString, control.token, name);
  }

  /** Returns the fault with this number, which {@code faults()} lists. */
  @Override
  public final Fault fault(long id) {
    return new Fault(this, id);
  }

  /**
   * What a sweep tries in this run, so that a test can expect its effect; empty in a run without faults, and without a sweep. The
   * first one of a pair.
   */
  public final Optional<SweepFault> fault() {
    return sweepFaults().faults().stream().map(SweepFault::of).findFirst();
  }

  /** The connect string for ZooKeeper clients: the HOST:PORT of each server, and the chroot of a created universe. */
  public String connectString() {
    control();
    return connectString;
  }

  /** The port of its server; the first one's of an ensemble. */
  public int port() {
    return control().port();
  }

  /** Advance the clock as if no client had sent anything meanwhile: connected sessions expire too. */
  public void advanceStrictly(Duration by) {
    advance(by, true);
  }

  /**
   * Inject a fault, until it is closed, removed or reset.
   *
   * @throws IllegalArgumentException if the fault can never act
   */
  public Fault inject(FaultSpec fault) {
    return inject(fault.json());
  }

  /** Remove a fault: see {@link Fault#remove}. */
  @Override
  public long removeFault(Fault fault) {
    return fault.remove();
  }

  /**
   * Removes every fault that has never acted and is not optional. Returns the sentence that {@link #removeFault} throws for each,
   * none if every fault has acted.
   */
  public final List<String> removeFaultsThatNeverActed() {
    List<String> sentences = new ArrayList<>();
    for (InjectedFault fault : faults()) {
      if (fault.hits() != 0 || fault.optional()) continue;
      try {
        fault(fault.fault()).remove();
      } catch (MinikeeperException error) {
        sentences.add(error.getMessage());
      }
    }
    return sentences;
  }

  /** The universe with this name, of the same server, also while that is down. */
  final Universe named(String name) {
    Universe universe = universe(name, connectString);
    universe.control = control.of(name);
    return universe;
  }

  final long removeNow(Fault fault) {
    return super.removeFault(fault);
  }

  /**
   * Enters a resource that a lock protects, until the result is closed. {@code resourceVerdict} says whether two were inside at a
   * time; a run of a sweep in which a resource is not safe fails.
   */
  public final ResourceEntry enter(String resource) {
    return new ResourceEntry(this, resourceEnter(Map.of("resource", resource)));
  }

  /** Enters a resource with a fencing token: the resource refuses one that is lower than one that it has seen. */
  public final ResourceEntry enter(String resource, long token) {
    return new ResourceEntry(this, resourceEnter(Map.of("resource", resource, "fencing_token", token)));
  }

  /** Export the tree in the format of {@link #seed(Map)}. */
  @Override
  public Map<String, Object> exportTree() {
    return Control.object(exportTree(TreeFormat.JSON, "/"));
  }

  /** Export the tree in the format of {@link #seed(String)}. */
  public String exportTreeAsYaml() {
    return (String) exportTree(TreeFormat.YAML, "/");
  }

  /** Waits as long as the other runs of the sweep take, if what is next depends on them. */
  @Override
  public SweepNext sweepNext(long sweep) {
    return new SweepNext(control().act("sweep_next", Map.of("sweep", sweep), Integer.MAX_VALUE));
  }

  /**
   * Show what a sweep has found so far: {@code is_clean}, {@code summary}, {@code text}, {@code html} and the other fields of
   * {@link #sweepReport}, which returns only the text.
   */
  public Map<String, Object> sweepFindings(Map<String, ?> fields) {
    return control().read("sweep_report", fields);
  }

  /** Drop a universe: close its connections and delete its state. */
  @Override
  public void dropUniverse(String name) {
    if (this.name == null) {
      super.dropUniverse(name);
    } else {
      // Only the server has this verb, not a created universe.
      at(control().addresses, control().token).dropUniverse(name);
    }
  }

  @Override
  public String toString() {
    return getClass().getSimpleName() + " " + connectString;
  }
}
