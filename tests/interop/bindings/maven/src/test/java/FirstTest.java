import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.minikeeper.Universe;
import io.github.minikeeper.junit.Minikeeper;
import org.apache.curator.framework.CuratorFramework;
import org.junit.jupiter.api.Test;

@Minikeeper
class FirstTest {
  @Test
  void clientAndServerAgree(CuratorFramework client, Universe universe) throws Exception {
    client.create().forPath("/greeting", "hello".getBytes());
    assertEquals("hello", universe.get("/greeting").text());
  }
}
