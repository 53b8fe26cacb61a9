package io.github.minikeeper.junit;

import io.github.minikeeper.Universe;
import org.apache.curator.framework.CuratorFramework;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/** For {@code SweepSuiteTest}: the tests that a suite still has, which only this package can ask for. */
@Minikeeper
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
public class PrintsTestsLeft {
  @Order(1)
  @Test
  void first() {
    print();
  }

  @Order(2)
  @Test
  void isSwept(Universe universe, CuratorFramework client) throws Exception {
    client.checkExists().forPath("/a");
  }

  @Order(3)
  @RepeatedTest(2)
  void isRepeated() {
    print();
  }

  @Order(4)
  @Test
  @Disabled("it is counted until JUnit skips it")
  void isDisabled() {}

  private static void print() {
    System.out.println("left " + SweepSuite.testsLeft().orElse(0));
  }
}
