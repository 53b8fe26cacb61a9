// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

import java.util.Map;

/**
 * The result of {@code story}.
 *
 * <p>The fixtures of the packages print {@code text} when a test fails, and save {@code html} and {@code json}. A
 * story has the newest 10000 entries of the journal, and its text the last 50.
 */
public final class Story extends Answer {
  Story(Map<String, Object> json) {
    super(json);
  }

  /** The story for people, about 100 lines at most. */
  public String text() {
    return (String) json.get("text");
  }

  /** A page with everything, which loads nothing. */
  public String html() {
    return (String) json.get("html");
  }

  /** Everything as JSON, as text. */
  public String json() {
    return (String) json.get("json");
  }

  /** The title as the name of a file, without an extension. */
  public String fileName() {
    return (String) json.get("file_name");
  }

  /** Its text. */
  @Override
  public String toString() {
    return text();
  }
}
