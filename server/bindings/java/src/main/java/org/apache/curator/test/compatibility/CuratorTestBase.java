package org.apache.curator.test.compatibility;

import org.apache.curator.test.BaseClassForTests;

/** Replaces Curator's class of the same name: {@link BaseClassForTests} with the usual times. */
public class CuratorTestBase extends BaseClassForTests {
  /** A tag of tests that need ZooKeeper 3.6 or newer. */
  public static final String zk36Group = "zk36";
  /** A tag of tests that need ZooKeeper 3.7 or newer. */
  public static final String zk37Group = "zk37";
  /** A tag of tests that also run with ZooKeeper 3.5. */
  public static final String zk35TestCompatibilityGroup = "zk35TestCompatibility";

  /** How long tests wait, and how long their sessions last. */
  protected final Timing2 timing = new Timing2();

  /** For subclasses. */
  public CuratorTestBase() {}
}
