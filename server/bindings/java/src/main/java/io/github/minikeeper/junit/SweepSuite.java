package io.github.minikeeper.junit;

import io.github.minikeeper.Universe;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The suite of {@code minikeeper sweep --suite}, if that runs this process. Uses neither JUnit 4 nor 5, so that either may be missing. */
final class SweepSuite {
  /** The ids of its test methods that have not ended, as {@link SuiteTests} notes them. */
  static final Set<String> LEFT = ConcurrentHashMap.newKeySet();

  private SweepSuite() {}

  /** Its server. */
  static Optional<Universe> server() {
    return Optional.ofNullable(System.getenv("MINIKEEPER_SWEEP_SUITE")).map(address -> Universe.at(address, null));
  }

  /** The number of test methods that have not ended, if it is known. */
  static OptionalInt testsLeft() {
    int left = LEFT.size();
    return left == 0 ? OptionalInt.empty() : OptionalInt.of(left);
  }
}
