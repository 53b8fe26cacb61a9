//! The blocking service discovery.

use std::sync::Arc;

use minikeeper_client::Error;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    CacheError, DiscoveryError, ServiceInstance, ServiceInstances, ServiceProviderBuilder,
    blocking::{Blocking, Client, changes, errors, waits},
};

/// Registers instances of services and finds them, compatible with Curator's; see
/// [`ServiceDiscovery`](crate::ServiceDiscovery).
///
/// # Examples
/// ```
/// # let server = minikeeper::blocking::Server::builder().start()?;
/// # let client = minikeeper_recipes::blocking::Client::connect(&server.connect_string())?;
/// use minikeeper_recipes::{RandomStrategy, ServiceInstance, blocking::ServiceDiscovery};
///
/// let discovery: ServiceDiscovery = ServiceDiscovery::new(&client, "/services")?;
/// discovery.register(ServiceInstance::new("print").address("10.0.0.7"))?;
///
/// let settings = discovery.provider("print").strategy(RandomStrategy);
/// let printers = discovery.start_provider(settings)?;
/// printers.initialized()?;
/// let printer = printers.instance().ok_or("one is registered")?;
/// assert_eq!(printer.address.as_deref(), Some("10.0.0.7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type ServiceDiscovery<P = Value> = Blocking<crate::ServiceDiscovery<P>>;

/// The instances of a service in memory; see [`ServiceCache`](crate::ServiceCache).
pub type ServiceCache<P = Value> = Blocking<crate::ServiceCache<P>>;

/// A stream of changes. Returned by [`ServiceCache::changes`].
pub type ServiceChanges<P = Value> = Blocking<crate::ServiceChanges<P>>;

/// Chooses an instance of a service for each request; see
/// [`ServiceProvider`](crate::ServiceProvider).
pub type ServiceProvider<P = Value> = Blocking<crate::ServiceProvider<P>>;

impl<P> ServiceDiscovery<P> {
    /// Creates a discovery with services below this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: &Client, base_path: &str) -> Result<Self, Error> {
        let discovery = crate::ServiceDiscovery::new(client.to_async(), base_path)?;
        Ok(client.bind(discovery))
    }
}

waits! { ServiceDiscovery<P: Sized> of "crate" {
    wait query_for_names() -> Vec<String>, DiscoveryError;
    finish unregister(instance: &ServiceInstance<P>) -> (), DiscoveryError;
    finish close() -> (), DiscoveryError;
} }

waits! { ServiceDiscovery<P: Serialize> of "crate" {
    wait register(instance: ServiceInstance<P>) -> Arc<ServiceInstance<P>>, DiscoveryError;
    wait update(instance: ServiceInstance<P>) -> Arc<ServiceInstance<P>>, DiscoveryError;
} }

waits! { ServiceDiscovery<P: DeserializeOwned> of "crate" {
    wait query_for_instances(name: &str) -> ServiceInstances<P>, DiscoveryError;
    wait query_for_instance(name: &str, id: &str) -> Option<ServiceInstance<P>>, DiscoveryError;
} }

impl<P: DeserializeOwned> ServiceDiscovery<P> {
    /// Starts a cache of the instances of a service.
    ///
    /// # Errors
    #[doc = errors!(wait)]
    pub fn cache(&self, name: &str) -> Result<ServiceCache<P>, DiscoveryError> {
        let start = async { self.object.cache(name) };
        let cache = self.session.wait("ServiceDiscovery::cache", start)?;
        Ok(self.with(cache))
    }

    /// Starts a provider with these settings, those of
    /// [`provider`](crate::ServiceDiscovery::provider).
    ///
    /// # Errors
    /// Those of [`ServiceProviderBuilder::start`], [`Error::InRuntime`], [`Error::Interrupted`].
    pub fn start_provider(
        &self,
        settings: ServiceProviderBuilder<P>,
    ) -> Result<ServiceProvider<P>, DiscoveryError> {
        let start = async { settings.start() };
        let what = "ServiceDiscovery::start_provider";
        Ok(self.with(self.session.wait(what, start)?))
    }
}

/// Defines what caches and providers have.
macro_rules! closes {
    ($($kind:ident),*) => {
        $(
            waits! { $kind<P: Sized> of "crate" {
                wait initialized() -> (), CacheError;
            } }

            impl<P> $kind<P> {
                #[doc = concat!(
                    "Like [`", stringify!($kind), "::close`](crate::", stringify!($kind),
                    "::close), and waits."
                )]
                ///
                /// # Errors
                #[doc = errors!(finish)]
                pub fn close(&self) -> Result<(), Error> {
                    let close = async {
                        self.object.close().await;
                        Ok(())
                    };
                    self.session.finish(concat!(stringify!($kind), "::close"), close)
                }
            }
        )*
    };
}

closes!(ServiceCache, ServiceProvider);

impl<P: DeserializeOwned> ServiceCache<P> {
    /// Returns a stream of the later changes.
    #[must_use]
    pub fn changes(&self) -> ServiceChanges<P> {
        self.with(self.object.changes())
    }
}

changes! { ServiceChanges<P: DeserializeOwned>: Arc<ServiceInstances<P>>, CacheError }
