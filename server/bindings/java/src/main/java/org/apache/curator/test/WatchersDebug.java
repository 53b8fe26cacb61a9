package org.apache.curator.test;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.zookeeper.ZooKeeper;

/** Replaces Curator's class of the same name: the paths that a client watches, as the client knows them. */
public class WatchersDebug {
  private WatchersDebug() {}

  /** The paths with a watch of getData, or of exists on a znode that exists; null without a client. */
  public static List<String> getDataWatches(ZooKeeper client) {
    return paths(client, "getDataWatches");
  }

  /** The paths with a watch of exists on a znode that does not exist; null without a client. */
  public static List<String> getExistWatches(ZooKeeper client) {
    return paths(client, "getExistWatches");
  }

  /** The paths with a watch of getChildren; null without a client. */
  public static List<String> getChildWatches(ZooKeeper client) {
    return paths(client, "getChildWatches");
  }

  private static List<String> paths(ZooKeeper client, String name) {
    if (client == null) return null;
    try {
      // Only for the client's own tests and subclasses, but without another way to ask.
      Method method = ZooKeeper.class.getDeclaredMethod(name);
      method.setAccessible(true);
      List<String> paths = new ArrayList<>();
      for (Object path : (List<?>) method.invoke(client)) paths.add((String) path);
      return paths;
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("this version of ZooKeeper has no method " + name, error);
    }
  }
}
