// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/**
 * The result of {@code sweepNext}.
 *
 * <p>Returns the number of the run, 0 if the sweep is over. The first runs have no faults. Several runs may be done
 * at a time, each in a universe of its own, but not with {@code orders}: waits until one ends if that decides what is
 * next.
 */
public final class SweepNext extends Answer {
  SweepNext(Map<String, Object> json) {
    super(json);
  }

  /** The number of the run; 0 if the sweep is over. */
  public long run() {
    return Values.number(json.get("run"));
  }

  /** Its points, or its order; empty for a run without faults. */
  public String points() {
    return (String) json.get("points");
  }

  /** What goes wrong, in a sentence. */
  public String sentence() {
    return (String) json.get("sentence");
  }
}
