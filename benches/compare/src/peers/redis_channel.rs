//! Waiting for messages on a channel of Redis.
//!
//! Each contender has a second connection for messages, like Redisson. The second one uses RESP3: a
//! message then goes from the task that reads it directly to the waiter, without a queue in
//! between. One connection for both would be possible with RESP3, but Redisson of that version
//! cannot do it, and the number of connections is part of the comparison.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use redis::{PushInfo, PushKind, RedisResult, aio::MultiplexedConnection};
use tokio::{runtime::Handle, sync::Semaphore, task::JoinHandle, time::timeout};

use super::{
    LockFailure,
    redis_link::{connect_for_messages, setup_failed},
};
use crate::Error;

/// One channel and its connection.
pub(super) struct Channel {
    connection: MultiplexedConnection,
    name: String,
    /// One permit for each message that no caller has waited for yet.
    messages: Arc<Semaphore>,
    /// The last change of the subscription, if not awaited yet.
    changing: Option<JoinHandle<()>>,
}

impl Channel {
    pub(super) async fn open(addr: SocketAddr, name: String) -> Result<Self, Error> {
        let messages = Arc::new(Semaphore::new(0));
        let received = Arc::clone(&messages);
        let connection = connect_for_messages(addr, move |info: PushInfo| match info.kind {
            PushKind::Message => received.add_permits(1),
            PushKind::Disconnection => received.close(),
            _ => {}
        });
        Ok(Self {
            connection: connection
                .await
                .map_err(|error| setup_failed(addr, &error))?,
            name,
            messages,
            changing: None,
        })
    }

    /// Subscribes and waits until the server has confirmed it.
    pub(super) async fn subscribe(&mut self) -> RedisResult<Subscription<'_>> {
        let subscription = self.fresh().await;
        let channel = &mut *subscription.0;
        // Whatever the result, dropping the subscription undoes it.
        channel.connection.subscribe(&channel.name).await?;
        Ok(subscription)
    }

    /// Subscribes without waiting for it: messages until then are lost.
    pub(super) async fn subscribe_unconfirmed(&mut self) -> Subscription<'_> {
        let subscription = self.fresh().await;
        let channel = &mut *subscription.0;
        let (mut connection, name) = (channel.connection.clone(), channel.name.clone());
        channel.changing = Some(tokio::spawn(async move {
            let _ = connection.subscribe(name).await;
        }));
        subscription
    }

    async fn fresh(&mut self) -> Subscription<'_> {
        if let Some(changing) = self.changing.take() {
            let _ = changing.await;
        }
        self.messages.forget_permits(usize::MAX);
        Subscription(self)
    }
}

/// A subscription; messages arrive while it lives. It ends in the background, as Redisson's does.
pub(super) struct Subscription<'a>(&'a mut Channel);

impl Subscription<'_> {
    /// Waits for a message, for at most `limit`.
    ///
    /// # Errors
    /// If the connection is gone, so that no message can arrive.
    pub(super) async fn message(&self, limit: Option<Duration>) -> Result<(), LockFailure> {
        let arriving = self.0.messages.acquire();
        let arrived = match limit {
            None => arriving.await,
            Some(limit) => match timeout(limit, arriving).await {
                Ok(arrived) => arrived,
                Err(_) => return Ok(()),
            },
        };
        match arrived {
            Ok(permit) => {
                permit.forget();
                Ok(())
            }
            Err(_) => Err(LockFailure::NotHeld(
                "the connection for messages has ended while waiting".into(),
            )),
        }
    }
}

impl Drop for Subscription<'_> {
    fn drop(&mut self) {
        // Without a runtime the connection ends, and the subscription with it.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let before = self.0.changing.take();
        let (mut connection, name) = (self.0.connection.clone(), self.0.name.clone());
        self.0.changing = Some(runtime.spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            let _ = connection.unsubscribe(name).await;
        }));
    }
}
