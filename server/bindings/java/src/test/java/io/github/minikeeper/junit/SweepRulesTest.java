package io.github.minikeeper.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.minikeeper.SweepFault;
import org.junit.jupiter.api.Test;

public class SweepRulesTest {
  private static MinikeeperSweep settings(String method) throws Exception {
    return SweepRulesTest.class.getDeclaredMethod(method).getAnnotation(MinikeeperSweep.class);
  }

  @MinikeeperSweep(
      allow = {
        @Allow(fault = SweepFault.SESSION_EXPIRED, raises = IllegalStateException.class, op = "create2", path = "/jobs/*",
            client = 2, reason = "asks again"),
        @Allow(fault = {SweepFault.OUTAGE, SweepFault.CLIENT_OUTAGE}, message = "because it is down", reason = "gives up")
      },
      leaveOut = @LeaveOut(fault = SweepFault.REPLY_LATE, reason = "an hour"))
  private void good() {}

  @MinikeeperSweep(allow = @Allow(fault = {}, reason = "x"))
  private void withoutFault() {}

  @MinikeeperSweep(allow = @Allow(fault = SweepFault.OUTAGE, reason = " "))
  private void withoutReason() {}

  @MinikeeperSweep(allow = @Allow(fault = SweepFault.OUTAGE, reason = "a\nb"))
  private void withTwoLines() {}

  @MinikeeperSweep(allow = @Allow(fault = SweepFault.OUTAGE, raises = Error.class, message = "a", reason = "b"))
  private void withTwoTexts() {}

  @Test
  public void ruleIsALineForEachFault() throws Exception {
    MinikeeperSweep settings = settings("good");
    assertEquals(
        "session-expired:2:create2:*:/jobs/* raises java.lang.IllegalStateException because asks again\n"
            + "outage:*:*:*:* raises because it is down because gives up\n"
            + "client-outage:*:*:*:* raises because it is down because gives up",
        SweepRules.allow(settings.allow()));
    assertEquals("reply-late:*:*:*:* because an hour", SweepRules.leaveOut(settings.leaveOut()));
  }

  @Test
  public void ruleThatCannotBeALineIsAnError() throws Exception {
    String[][] cases = {
      {"withoutFault", "names no fault"},
      {"withoutReason", "the reason of a rule of a sweep is a text"},
      {"withTwoLines", "the reason of a rule of a sweep has several lines"},
      {"withTwoTexts", "give one of them"}
    };
    for (String[] each : cases) {
      Allow[] rules = settings(each[0]).allow();
      String message = assertThrows(IllegalArgumentException.class, () -> SweepRules.allow(rules)).getMessage();
      assertTrue(message.contains(each[1]), message);
    }
  }
}
