//! Checked by the compiler: every public type is `Send` and `Sync`, and every future is `Send`.

use std::time::Duration;

use minikeeper_client::{
    Backoff, Call, Cause, Children, Client, ClientBuilder, ClientStatus, ConnectError,
    ConnectString, ConnectStringError, Connecting, ConnectionState, CreateOptions, Created, Data,
    Driver, EnsembleTracker, EnsembleTrackerError, Epoch, Error, ErrorClass, Fired, GapCause,
    LostReason, Multi, Names, Notification, OneShot, Persistent, PersistentWatcher, SaslError,
    SaslStep, Stamped, States, Tcp, WatchEvent, WatchEvents,
};

const fn shared<T: Send + Sync>() {}

const fn sent<T: Send>() {}

#[cfg(feature = "tls")]
const _: () = {
    shared::<minikeeper_client::Tls>();
    shared::<minikeeper_client::TlsBuilder>();
    shared::<minikeeper_client::TlsError>();
};

#[cfg(feature = "sasl")]
const _: () = sent::<minikeeper_client::DigestMd5>();

const _: () = {
    shared::<Backoff>();
    shared::<Call<Data>>();
    shared::<Cause>();
    shared::<Children>();
    shared::<Client>();
    shared::<ClientStatus>();
    shared::<ConnectError>();
    shared::<ConnectString>();
    shared::<ConnectStringError>();
    shared::<ConnectionState>();
    shared::<CreateOptions>();
    shared::<Created>();
    shared::<Data>();
    shared::<Epoch>();
    shared::<EnsembleTracker>();
    shared::<EnsembleTrackerError>();
    shared::<Error>();
    shared::<ErrorClass>();
    shared::<Fired>();
    shared::<GapCause>();
    shared::<LostReason>();
    shared::<Multi>();
    shared::<Names>();
    shared::<Notification>();
    shared::<OneShot>();
    shared::<Persistent>();
    shared::<PersistentWatcher>();
    shared::<SaslError>();
    shared::<SaslStep>();
    shared::<Stamped<Data>>();
    shared::<States>();
    shared::<Tcp>();
    shared::<WatchEvent>();
    shared::<WatchEvents>();
    // They own the transport, which only one task uses.
    sent::<ClientBuilder>();
    sent::<Driver>();
    sent::<Connecting>();
};

fn send<F: Future + Send>(_: F) {}

/// Never called: it is enough that it compiles.
#[expect(dead_code, reason = "only the types matter")]
async fn futures_are_send(
    client: Client,
    driver: Driver,
    mut events: Persistent,
    mut watcher: PersistentWatcher,
) {
    send(Client::connect(""));
    send(Client::builder("").unwrap().connect());
    send(client.connected(Duration::ZERO));
    send(client.close());
    send(client.create_root());
    send(client.get_data("/"));
    send(client.states().next());
    send(driver.run());
    send(events.next());
    send(watcher.next());
}
