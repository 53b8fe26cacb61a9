package org.apache.curator.test;

import java.util.concurrent.ExecutorService;

/** Replaces Curator's class of the same name: an executor that remembers whether {@link #execute} was called. */
public class ExecuteCalledWatchingExecutorService extends DelegatingExecutorService {
  private boolean isCalled;

  /** Hands everything to this executor. */
  public ExecuteCalledWatchingExecutorService(ExecutorService inner) {
    super(inner);
  }

  @Override
  public synchronized void execute(Runnable task) {
    isCalled = true;
    super.execute(task);
  }

  /** Whether {@link #execute} was called since the start, or since the last {@link #setExecuteCalled}. */
  public synchronized boolean isExecuteCalled() {
    return isCalled;
  }

  /** Sets or resets what {@link #isExecuteCalled} returns. */
  public synchronized void setExecuteCalled(boolean isCalled) {
    this.isCalled = isCalled;
  }
}
