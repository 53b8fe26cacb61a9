package io.github.minikeeper.junit;

import io.github.minikeeper.SweepFault;
import java.util.Arrays;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What the annotations of a sweep say of its points, as text for the server: a rule a line. */
final class SweepRules {
  private SweepRules() {}

  static String allow(Allow[] rules) {
    return Arrays.stream(rules)
        .flatMap(rule -> at(rule.fault(), rule.client(), rule.op(), rule.path())
            .map(at -> at + raises(rule) + because(rule.reason())))
        .collect(Collectors.joining("\n"));
  }

  static String leaveOut(LeaveOut[] rules) {
    return Arrays.stream(rules)
        .flatMap(rule -> at(rule.fault(), rule.client(), rule.op(), rule.path()).map(at -> at + because(rule.reason())))
        .collect(Collectors.joining("\n"));
  }

  private static Stream<String> at(SweepFault[] faults, int client, String op, String path) {
    if (faults.length == 0) throw new IllegalArgumentException("a rule of a sweep names no fault");
    String part = part(client == 0 ? "" : Integer.toString(client)) + part(op) + ":*" + part(path);
    return Arrays.stream(faults).map(fault -> fault + part);
  }

  private static String part(String given) {
    return ":" + (given.isEmpty() ? "*" : line("rule", given));
  }

  private static String raises(Allow rule) {
    boolean isAny = rule.raises() == Throwable.class;
    if (!isAny && !rule.message().isEmpty()) {
      throw new IllegalArgumentException("a rule of a sweep has raises and message: give one of them");
    }
    String text = isAny ? rule.message() : rule.raises().getName();
    return text.isEmpty() ? "" : " raises " + line("message", text);
  }

  private static String because(String reason) {
    String line = line("reason", reason);
    // The server takes what is behind the last one for the reason.
    if (line.isBlank() || line.contains(" because ")) {
      throw new IllegalArgumentException("the reason of a rule of a sweep is a text without \" because \", not \"" + line + "\"");
    }
    return " because " + line;
  }

  private static String line(String what, String text) {
    if (text.lines().count() > 1) {
      throw new IllegalArgumentException("the " + what + " of a rule of a sweep has several lines: " + text);
    }
    return text;
  }
}
