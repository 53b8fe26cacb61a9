// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.List;
import java.util.Map;

/**
 * The result of {@code sweepFaults}.
 *
 * <p>A test that expects an error of one fault asks so.
 */
public final class SweepFaults extends Answer {
  SweepFaults(Map<String, Object> json) {
    super(json);
  }

  /** The faults; none in a run without faults, and without a sweep. */
  public List<String> faults() {
    return Values.texts(json.get("faults"));
  }

  /** Its points. */
  public String points() {
    return (String) json.get("points");
  }

  /** What goes wrong, in a sentence. */
  public String sentence() {
    return (String) json.get("sentence");
  }
}
