package io.github.minikeeper;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Reading and writing JSON. */
public class JsonTest {
  /** Fails unless this is JSON. */
  public static void assertParses(String text) {
    Json.parse(text);
  }

  /** Returns maps, lists, texts and numbers. */
  public static Object parse(String text) {
    return Json.parse(text);
  }

  @Test
  void writtenJsonIsReadBack() {
    List<Object> values = Arrays.asList(
        null, true, false, -5L, Long.MAX_VALUE, 1.5, "", "ä\"\\/\n\u0001\ud83d\ude00", List.of(), Map.of(),
        Map.of("a", List.of(Map.of("b", List.of(1L)))));
    for (Object value : values) assertEquals(value, Json.parse(Json.write(value)));
  }

  @Test
  void jsonWithSpacesAndEscapesIsRead() {
    assertEquals(Map.of("a", List.of(1L, 2.5e3), "b/", "\u00e4\t/"),
        Json.parse(" { \"a\" : [ 1 , 2.5e3 ] ,\r\n\"b\\/\":\"\\u00e4\\t\\/\" } "));
  }

  @Test
  void invalidJsonIsRefused() {
    String[] texts = {
      "", "{", "[1", "[1,", "{\"a\"}", "{\"a\":}", "nul", "\"", "\"\\", "\"\\x\"", "\"\\u12", "\"\\u12g4\"", "1 2", "-", "<html>",
      "[".repeat(100_000)
    };
    for (String text : texts) {
      assertThrows(IllegalArgumentException.class, () -> Json.parse(text), text);
    }
  }
}
