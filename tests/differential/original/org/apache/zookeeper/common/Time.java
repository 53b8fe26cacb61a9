package org.apache.zookeeper.common;

import java.util.Date;

/**
 * Replaces ZooKeeper's class of this name, from which all of the server takes the time. This clock is manual, so
 * that sessions, TTLs and times in stats depend on the requests and not on their duration.
 */
public final class Time {
    /** 2024-01-01 00:00 UTC, where minikeeper's manual clock starts too. */
    private static final long WALL_START_MS = 1_704_067_200_000L;

    private static volatile long elapsedMs;

    private Time() {}

    public static void set(long toMs) {
        elapsedMs = toMs;
    }

    public static long currentElapsedTime() {
        return elapsedMs;
    }

    public static long currentWallTime() {
        return WALL_START_MS + elapsedMs;
    }

    public static Date elapsedTimeToDate(long elapsedMs) {
        return new Date(WALL_START_MS + elapsedMs);
    }
}
