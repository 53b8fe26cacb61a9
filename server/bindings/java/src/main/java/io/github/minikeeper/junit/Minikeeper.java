package io.github.minikeeper.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Provides minikeeper to the tests of a class, and of those nested in it: each test with a parameter of type
 * {@link io.github.minikeeper.Universe} gets its own universe. {@code minikeeper sweep --suite} sweeps these tests.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith({MinikeeperExtension.class, SuiteExtension.class})
public @interface Minikeeper {
  /** Options of the program, as on its command line. */
  String[] options() default {};

  /**
   * Whether all tests of the class share one universe, with what they leave in it, as a parameter of {@code @BeforeAll} needs.
   * By default each test has its own.
   */
  boolean perClass() default false;
}
