package io.github.minikeeper;

import java.util.Map;

/** What a verb returns, or an object in it: typed access to JSON of the control API. */
abstract class Answer {
  final Map<String, Object> json;

  Answer(Map<String, Object> json) {
    this.json = json;
  }

  /** Whether another answer of the same type has the same fields. */
  @Override
  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((Answer) other).json.equals(json);
  }

  @Override
  public int hashCode() {
    return json.hashCode();
  }

  /** Every field that the server returned, by the names of the control API. */
  @Override
  public String toString() {
    return json.toString();
  }
}
