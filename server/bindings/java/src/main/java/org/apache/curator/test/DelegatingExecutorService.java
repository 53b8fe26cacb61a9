package org.apache.curator.test;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Replaces Curator's class of the same name: an executor that another one does the work of. */
public class DelegatingExecutorService implements ExecutorService {
  private final ExecutorService inner;

  /** Hands everything to this executor. */
  public DelegatingExecutorService(ExecutorService inner) {
    this.inner = inner;
  }

  @Override
  public void execute(Runnable task) {
    inner.execute(task);
  }

  @Override
  public Future<?> submit(Runnable task) {
    return inner.submit(task);
  }

  @Override
  public <T> Future<T> submit(Runnable task, T result) {
    return inner.submit(task, result);
  }

  @Override
  public <T> Future<T> submit(Callable<T> task) {
    return inner.submit(task);
  }

  @Override
  public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks) throws InterruptedException {
    return inner.invokeAll(tasks);
  }

  @Override
  public <T> List<Future<T>> invokeAll(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
      throws InterruptedException {
    return inner.invokeAll(tasks, timeout, unit);
  }

  @Override
  public <T> T invokeAny(Collection<? extends Callable<T>> tasks) throws InterruptedException, ExecutionException {
    return inner.invokeAny(tasks);
  }

  @Override
  public <T> T invokeAny(Collection<? extends Callable<T>> tasks, long timeout, TimeUnit unit)
      throws InterruptedException, ExecutionException, TimeoutException {
    return inner.invokeAny(tasks, timeout, unit);
  }

  @Override
  public void shutdown() {
    inner.shutdown();
  }

  @Override
  public List<Runnable> shutdownNow() {
    return inner.shutdownNow();
  }

  @Override
  public boolean isShutdown() {
    return inner.isShutdown();
  }

  @Override
  public boolean isTerminated() {
    return inner.isTerminated();
  }

  @Override
  public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
    return inner.awaitTermination(timeout, unit);
  }
}
