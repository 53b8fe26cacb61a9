import static org.junit.Assert.assertEquals;

import io.github.minikeeper.junit.MinikeeperRule;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.junit.Rule;
import org.junit.Test;

public class FirstJunit4Test {
  @Rule
  public final MinikeeperRule minikeeper = new MinikeeperRule();

  @Test
  public void clientAndServerAgree() throws Exception {
    try (CuratorFramework client =
        CuratorFrameworkFactory.newClient(minikeeper.connectString(), new RetryOneTime(100))) {
      client.start();
      client.create().forPath("/greeting", "hello".getBytes());
      assertEquals("hello", minikeeper.universe().get("/greeting").text());
    }
  }
}
