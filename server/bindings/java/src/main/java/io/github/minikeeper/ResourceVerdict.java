// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/**
 * The result of {@code resourceVerdict}.
 *
 * <p>It was "safe" if no two holders were inside at a time, or the resource has refused the lower of their tokens. It
 * is "undecided" if no holder has entered, or a holder that has not left may have been inside when another one
 * entered.
 */
public final class ResourceVerdict extends Answer {
  ResourceVerdict(Map<String, Object> json) {
    super(json);
  }

  /** Its verdict. */
  public String verdict() {
    return (String) json.get("verdict");
  }

  /** The number of entries whose token it has accepted. */
  public long entries() {
    return Values.number(json.get("entries"));
  }

  /** The writes that it has accepted. */
  public long writes() {
    return Values.number(json.get("writes"));
  }

  /** How often it has refused a token. */
  public long refused() {
    return Values.number(json.get("refused"));
  }

  /** The verdict for people, with the acts that decide it. */
  public String text() {
    return (String) json.get("text");
  }

  /** Its text. */
  @Override
  public String toString() {
    return text();
  }
}
