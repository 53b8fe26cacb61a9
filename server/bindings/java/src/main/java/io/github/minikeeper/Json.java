package io.github.minikeeper;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes the JSON that the control API needs: objects are maps, whole numbers are longs. */
final class Json {
  private static final int DEPTH_MAX = 200;

  private final String text;
  private int at;
  private int depth;

  private Json(String text) {
    this.text = text;
  }

  /** Throws IllegalArgumentException if the text is not JSON. */
  static Object parse(String text) {
    Json json = new Json(text);
    Object value = json.value();
    json.skipSpace();
    if (json.at != text.length()) throw json.wrong();
    return value;
  }

  static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out) {
    if (value instanceof Map) {
      String comma = "{";
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        out.append(comma);
        write(String.valueOf(entry.getKey()), out);
        out.append(':');
        write(entry.getValue(), out);
        comma = ",";
      }
      out.append(comma.equals("{") ? "{}" : "}");
    } else if (value instanceof Iterable) {
      String comma = "[";
      for (Object item : (Iterable<?>) value) {
        out.append(comma);
        write(item, out);
        comma = ",";
      }
      out.append(comma.equals("[") ? "[]" : "]");
    } else if (value == null || value instanceof Number || value instanceof Boolean) {
      out.append(value);
    } else {
      writeText(value.toString(), out);
    }
  }

  private static void writeText(String text, StringBuilder out) {
    out.append('"');
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  private Object value() {
    skipSpace();
    if (++depth > DEPTH_MAX) throw wrong();
    Object value = bareValue();
    depth -= 1;
    return value;
  }

  private Object bareValue() {
    switch (peek()) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return text();
      case 't':
        return word("true", true);
      case 'f':
        return word("false", false);
      case 'n':
        return word("null", null);
      default:
        return number();
    }
  }

  private Map<String, Object> object() {
    Map<String, Object> object = new LinkedHashMap<>();
    at += 1;
    skipSpace();
    if (peek() == '}') {
      at += 1;
      return object;
    }
    while (true) {
      skipSpace();
      String name = text();
      skipSpace();
      take(':');
      object.put(name, value());
      skipSpace();
      if (peek() == ',') {
        at += 1;
      } else {
        take('}');
        return object;
      }
    }
  }

  private List<Object> array() {
    List<Object> array = new ArrayList<>();
    at += 1;
    skipSpace();
    if (peek() == ']') {
      at += 1;
      return array;
    }
    while (true) {
      array.add(value());
      skipSpace();
      if (peek() == ',') {
        at += 1;
      } else {
        take(']');
        return array;
      }
    }
  }

  private String text() {
    take('"');
    StringBuilder out = new StringBuilder();
    while (true) {
      char c = peek();
      at += 1;
      if (c == '"') return out.toString();
      out.append(c == '\\' ? escaped() : c);
    }
  }

  private char escaped() {
    char c = peek();
    at += 1;
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return c;
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'u':
        if (at + 4 > text.length()) throw wrong();
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
      default:
        throw wrong();
    }
  }

  private Object number() {
    int from = at;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at += 1;
    String number = text.substring(from, at);
    if (number.isEmpty()) throw wrong();
    for (int i = 0; i < number.length(); i += 1) {
      if (".eE+".indexOf(number.charAt(i)) >= 0) return Double.valueOf(number);
    }
    return Long.valueOf(number);
  }

  private Object word(String word, Object value) {
    if (!text.startsWith(word, at)) throw wrong();
    at += word.length();
    return value;
  }

  private void take(char expected) {
    if (peek() != expected) throw wrong();
    at += 1;
  }

  private char peek() {
    if (at >= text.length()) throw wrong();
    return text.charAt(at);
  }

  private void skipSpace() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at += 1;
  }

  private IllegalArgumentException wrong() {
    return new IllegalArgumentException("invalid JSON at character " + at);
  }
}
