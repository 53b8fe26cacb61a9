import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** The common operations of the recipes, as used by one contender. */
interface Lock {
    /** Returns whether the lock was acquired in time. */
    boolean acquire(boolean toRead, long limitMs) throws Exception;

    void release() throws Exception;

    /** Returns the recipe that the options select: leases=N, readers=N; else the mutex. */
    static Lock of(CuratorFramework client, Map<String, String> options) {
        String path = options.get("path");
        if (options.containsKey("leases")) {
            return semaphore(new InterProcessSemaphoreV2(client, path, Integer.parseInt(options.get("leases"))));
        }
        if (options.containsKey("readers")) {
            InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
            return mutex(both.readLock(), both.writeLock());
        }
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        return mutex(mutex, mutex);
    }

    private static Lock mutex(InterProcessMutex toRead, InterProcessMutex toWrite) {
        return new Lock() {
            private InterProcessMutex held;

            @Override
            public boolean acquire(boolean isToRead, long limitMs) throws Exception {
                held = isToRead ? toRead : toWrite;
                return held.acquire(limitMs, TimeUnit.MILLISECONDS);
            }

            @Override
            public void release() throws Exception {
                held.release();
            }
        };
    }

    private static Lock semaphore(InterProcessSemaphoreV2 semaphore) {
        return new Lock() {
            private Lease lease;

            @Override
            public boolean acquire(boolean isToRead, long limitMs) throws Exception {
                lease = semaphore.acquire(limitMs, TimeUnit.MILLISECONDS);
                return lease != null;
            }

            @Override
            public void release() {
                semaphore.returnLease(lease);
            }
        };
    }
}
