//! The task of a client: connects, reads and handles timeouts. Calls write their requests
//! themselves, see `shared.rs`.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf as _, BytesMut};
use tokio::{
    io::AsyncReadExt as _,
    time::{Sleep, sleep_until},
};

use crate::{
    core::{machine::Attempt, outcome::Cause},
    shared::Shared,
    transport::{Reader, Transport},
};

/// The most that is kept of the reason of a failure: a server may write part of it, such as the names
/// in its certificate. Unit: bytes.
const REASON_BYTES_MAX: usize = 1024;

/// The largest read unless a reply is larger, in bytes.
const READ_BYTES: usize = 16 << 10;

/// The task of a client: connects, reads replies, and handles timeouts until the client is closed.
///
/// [`crate::ClientBuilder::connect`] spawns it; [`crate::ClientBuilder::build`] returns it to the
/// caller. The client makes no progress unless it is polled.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// # use std::time::Duration;
/// # use minikeeper_client::Client;
/// let (client, driver) = Client::builder(&address)?.build();
/// tokio::spawn(driver.run());
/// client.connected(Duration::from_secs(5)).await?;
/// # Ok(()) });
/// ```
#[must_use = "a client does nothing unless its driver is polled"]
pub struct Driver {
    shared: Arc<Shared>,
    transport: Box<dyn Transport>,
    buffer: BytesMut,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, transport: Box<dyn Transport>) -> Self {
        Self {
            shared,
            transport,
            buffer: BytesMut::new(),
        }
    }

    /// Spawns [`Driver::run`] on the current runtime. This is not part of an `async fn`, whose body
    /// would be compiled again in every program that calls it.
    pub(crate) fn spawn(self) {
        drop(tokio::spawn(self.run()));
    }

    /// Drives the client until it is closed.
    ///
    /// # Cancel safety
    /// Dropping the future ends the client: calls without a reply fail, and the session ends with
    /// its timeout.
    pub async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut alarm = Alarm::new(&shared);
        loop {
            alarm.tick();
            let attempt = shared.look(|inner| match inner.core.connecting() {
                _ if inner.core.is_stopped() => Err(()),
                attempt => Ok(attempt),
            });
            match attempt {
                Err(()) => break,
                Ok(None) => poll_fn(|cx| alarm.poll(cx)).await,
                Ok(Some(attempt)) => self.visit(&attempt, &mut alarm).await,
            }
        }
    }

    /// Connects to a server and serves the connection until it ends.
    async fn visit(&mut self, attempt: &Attempt, alarm: &mut Alarm<'_>) {
        let shared = alarm.shared;
        let host = &*attempt.host;
        // The machine may be at the next attempt by the time that this one is over.
        let is_current = || shared.look(|inner| inner.core.is_current(attempt));
        let mut connecting = self.transport.connect(host);
        let connected = poll_fn(|cx| {
            if let Poll::Ready(result) = connecting.as_mut().poll(cx) {
                return Poll::Ready(Some(result));
            }
            while alarm.poll(cx).is_ready() {
                if !is_current() {
                    return Poll::Ready(None);
                }
            }
            Poll::Pending
        })
        .await;
        drop(connecting);
        let why = match connected {
            None => "no reply in time".to_owned(),
            Some(Err(error)) => error.to_string(),
            Some(Ok((reader, writer))) if is_current() => {
                tracing::debug!(host, "connected");
                shared.install(writer);
                shared.with(|inner, now| inner.core.handle_connected(now));
                let why = self.stay(reader, alarm).await;
                drop(shared.uninstall());
                why
            }
            Some(Ok(_)) => "given up by the client".to_owned(),
        };
        tracing::debug!(why, "no connection");
        let reason = shortened(format!("{host}: {why}"));
        shared.with(|inner, now| {
            inner.last_failure = Some(reason);
            if inner.core.is_current(attempt) {
                inner
                    .core
                    .handle_disconnected(now, &mut inner.notifications);
            }
        });
    }

    /// Reads until the connection ends; returns the reason.
    async fn stay(&mut self, mut reader: Reader, alarm: &mut Alarm<'_>) -> String {
        let shared = alarm.shared;
        self.buffer.clear();
        shared.flush();
        poll_fn(|cx| {
            loop {
                match self.read(&mut reader, cx) {
                    Poll::Ready(Ok(0)) => {
                        let phase = shared.look(|inner| inner.core.phase());
                        return Poll::Ready(format!("closed by the server{phase}"));
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(error.to_string()),
                    Poll::Ready(Ok(_)) => {
                        if let Err(fault) = self.digest() {
                            return Poll::Ready(fault);
                        }
                    }
                    Poll::Pending => {
                        let is_time_over = alarm.poll(cx).is_ready();
                        let look = shared.look(|inner| inner.output_state());
                        if look.is_due {
                            shared.flush();
                        }
                        if let Some(why) = look.over {
                            return Poll::Ready(why);
                        }
                        if !is_time_over {
                            return Poll::Pending;
                        }
                    }
                }
            }
        })
        .await
    }

    fn read(&mut self, reader: &mut Reader, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.buffer.reserve(READ_BYTES);
        pin!(reader.read_buf(&mut self.buffer)).poll(cx)
    }

    /// Passes the bytes that were read to the machine, and writes its output.
    fn digest(&mut self) -> Result<(), String> {
        let batch = self.buffer.split().freeze();
        let (done, look) = self
            .shared
            .with(|inner, now| {
                let done = inner
                    .core
                    .handle_read(now, &batch, &mut inner.notifications)?;
                Ok((done, inner.output_state()))
            })
            .map_err(|fault: crate::core::outcome::CloseCause| fault.to_string())?;
        if let Some(why) = look.over {
            return Err(why);
        }
        // The machine keeps no slice of the batch, so the buffer can be reused.
        match batch.try_into_mut() {
            Ok(mut buffer) => {
                buffer.advance(done);
                self.buffer = buffer;
            }
            Err(batch) => self.buffer.extend_from_slice(&batch[done..]),
        }
        if look.is_due {
            self.shared.flush();
        }
        Ok(())
    }
}

/// Cuts a reason that is too long.
fn shortened(mut reason: String) -> String {
    if reason.len() > REASON_BYTES_MAX {
        let end = (0..=REASON_BYTES_MAX - "...".len())
            .rev()
            .find(|&end| reason.is_char_boundary(end));
        reason.truncate(end.unwrap_or(0));
        reason.push_str("...");
    }
    reason
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Nothing more is read, so callers must not keep waiting.
        drop(self.shared.uninstall());
        self.shared.with(|inner, now| {
            if inner.core.is_stopped() {
                return;
            }
            let cause = Cause::DriverEnded;
            inner.last_failure = Some(cause.to_string());
            inner.core.stop_for(now, cause, &mut inner.notifications);
        });
    }
}

/// Wakes the driver when the machine has a timeout to handle.
struct Alarm<'a> {
    shared: &'a Shared,
    sleep: Pin<Box<Sleep>>,
}

impl<'a> Alarm<'a> {
    fn new(shared: &'a Shared) -> Self {
        let sleep = Box::pin(sleep_until(shared.clock.at(shared.clock.now())));
        Self { shared, sleep }
    }

    /// Lets the machine handle timeouts, and sets the alarm for the next one.
    fn tick(&mut self) {
        let next = self.shared.with(|inner, now| {
            inner.core.handle_timeout(now, &mut inner.notifications);
            inner.armed = inner.core.next_deadline();
            inner.armed
        });
        if let Some(next) = next {
            self.sleep.as_mut().reset(self.shared.clock.at(next));
        }
    }

    /// Ready when the machine has handled a timeout, and when it is stopped.
    ///
    /// Sets the alarm earlier if a deadline comes before it. A deadline that moved later does not
    /// change the alarm, because every reply moves deadlines later.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (armed, is_earlier, is_stopped) = self.shared.look(|inner| {
            inner.set_driver(cx.waker());
            let next = inner.core.next_deadline();
            let is_earlier = inner.is_earlier(next);
            if is_earlier {
                inner.armed = next;
            }
            (inner.armed, is_earlier, inner.core.is_stopped())
        });
        if is_stopped {
            return Poll::Ready(());
        }
        if let Some(at) = armed {
            if is_earlier {
                self.sleep.as_mut().reset(self.shared.clock.at(at));
            }
            if self.sleep.as_mut().poll(cx).is_ready() {
                self.tick();
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_a_failure_is_bounded() {
        assert_eq!(shortened("zk1: refused".to_owned()), "zk1: refused");
        let long = shortened("é".repeat(REASON_BYTES_MAX));
        assert!(long.len() <= REASON_BYTES_MAX && long.ends_with("é..."));
    }
}
