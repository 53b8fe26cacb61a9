import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * Takes a lock nobody else wants and gives it back, with Curator. Reads a number of operations a
 * line, and answers with the median time of one, in nanoseconds.
 */
public final class CuratorCycle {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 30_000, 10_000, new RetryOneTime(100))) {
            client.start();
            InterProcessMutex lock = new InterProcessMutex(client, "/bench/curator");
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                long[] times = new long[Integer.parseInt(line)];
                for (int at = 0; at < times.length; at++) {
                    long began = System.nanoTime();
                    lock.acquire();
                    lock.release();
                    times[at] = System.nanoTime() - began;
                }
                Arrays.sort(times);
                System.out.println(times.length == 0 ? 0 : times[times.length / 2]);
            }
        }
    }
}
