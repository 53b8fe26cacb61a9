package io.github.minikeeper;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.Function;

/** Converts values from and to the JSON of the control API. */
final class Values {
  private Values() {}

  /** Returns fields from alternating names and values. */
  static Map<String, Object> fields(Object... namesAndValues) {
    return with(Map.of(), namesAndValues);
  }

  /** Appends fields, from alternating names and values, to other fields. */
  static Map<String, Object> with(Map<String, ?> first, Object... namesAndValues) {
    Map<String, Object> fields = new LinkedHashMap<>(first);
    for (int at = 0; at < namesAndValues.length; at += 2) {
      fields.put((String) namesAndValues[at], json(namesAndValues[at + 1]));
    }
    return fields;
  }

  private static Object json(Object value) {
    if (value instanceof Duration) return ((Duration) value).toMillis();
    if (value instanceof Fault) return ((Fault) value).id;
    if (value instanceof Enum) return ((Enum<?>) value).name().toLowerCase(Locale.ROOT).replace('_', '-');
    // The program may run in a different working directory.
    if (value instanceof Path) return ((Path) value).toAbsolutePath().toString();
    return value;
  }

  /** Returns the field for a tree. */
  static Map<String, Object> tree(Map<String, ?> tree) {
    Map<String, Object> znodes = new LinkedHashMap<>();
    tree.forEach((path, znode) -> znodes.put(path, znodeJson(znode)));
    return Map.of("tree", znodes);
  }

  /** Returns the field for the data of a znode. */
  static Map<String, Object> data(byte[] data) {
    return Map.of("data_base64", Base64.getEncoder().encodeToString(data));
  }

  /** Converts a znode of a tree to JSON, with bytes in base64. */
  private static Object znodeJson(Object znode) {
    if (znode instanceof byte[]) return Map.of("data_base64", Base64.getEncoder().encodeToString((byte[]) znode));
    if (!(znode instanceof Map) || !(((Map<?, ?>) znode).get("data") instanceof byte[])) return znode;
    Map<Object, Object> fields = new LinkedHashMap<>((Map<?, ?>) znode);
    fields.putAll((Map<?, ?>) znodeJson(fields.remove("data")));
    return fields;
  }

  static long number(Object value) {
    return ((Number) value).longValue();
  }

  static List<String> texts(Object value) {
    return list(value, text -> (String) text);
  }

  static OptionalLong optionalNumber(Object value) {
    return value == null ? OptionalLong.empty() : OptionalLong.of(number(value));
  }

  static OptionalDouble optionalDouble(Object value) {
    return value == null ? OptionalDouble.empty() : OptionalDouble.of(((Number) value).doubleValue());
  }

  /** Returns the id of a session, as {@code zooKeeper.getSessionId()} returns it. */
  static long session(Object value) {
    return Long.parseUnsignedLong(((String) value).substring(2), 16);
  }

  static OptionalLong optionalSession(Object value) {
    return value == null ? OptionalLong.empty() : OptionalLong.of(session(value));
  }

  /** Returns the data in an answer, null if there is none. */
  static byte[] data(Map<String, ?> answer) {
    Object coded = answer.get("data_base64");
    if (coded != null) return Base64.getDecoder().decode((String) coded);
    return orNull(answer.get("data"), text -> ((String) text).getBytes(StandardCharsets.UTF_8));
  }

  static <T extends Enum<T>> T word(Class<T> type, Object value) {
    return Enum.valueOf(type, ((String) value).toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  static <T> T orNull(Object value, Function<Object, T> converted) {
    return value == null ? null : converted.apply(value);
  }

  /** Converts a list, which is empty if it is absent. */
  static <T> List<T> list(Object value, Function<Object, T> converted) {
    List<T> list = new ArrayList<>();
    if (value != null) for (Object one : (List<?>) value) list.add(converted.apply(one));
    return list;
  }
}
