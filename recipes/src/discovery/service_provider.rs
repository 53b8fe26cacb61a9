//! Choosing one of the instances of a service.
//!
//! Source: Curator's `ServiceProviderImpl`, `DownInstanceManager` and `FilteredInstanceProvider`.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use minikeeper_client::Client;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    instance::ServiceInstance,
    service_cache::ServiceCache,
    service_discovery::{DiscoveryError, ServiceDiscovery},
    strategies::{ProviderStrategy, RoundRobinStrategy},
};
use crate::{caches::CacheError, clock};

/// When a provider leaves out an instance that its caller had errors with. Curator's class of the
/// same name.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use minikeeper_recipes::DownInstancePolicy;
///
/// let mut policy = DownInstancePolicy::default();
/// policy.timeout = Duration::from_secs(5);
/// policy.error_threshold = 1;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DownInstancePolicy {
    /// How long errors count, from the first one on.
    ///
    /// Default: 30 s.
    pub timeout: Duration,
    /// The number of errors within that time for which an instance is left out. With 0 all are left
    /// out as soon as they have an error.
    ///
    /// Default: 2.
    pub error_threshold: u32,
}

impl Default for DownInstancePolicy {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            error_threshold: 2,
        }
    }
}

type InstanceFilter<P> = Box<dyn Fn(&ServiceInstance<P>) -> bool + Send + Sync>;

/// The settings of a provider. Returned by [`ServiceDiscovery::provider`].
#[must_use]
pub struct ServiceProviderBuilder<P = Value> {
    discovery: ServiceDiscovery<P>,
    name: String,
    strategy: Box<dyn ProviderStrategy<P>>,
    filters: Vec<InstanceFilter<P>>,
    policy: DownInstancePolicy,
}

impl<P> ServiceProviderBuilder<P> {
    pub(crate) fn new(discovery: ServiceDiscovery<P>, name: &str) -> Self {
        Self {
            discovery,
            name: name.to_owned(),
            strategy: Box::new(RoundRobinStrategy::default()),
            filters: Vec::new(),
            policy: DownInstancePolicy::default(),
        }
    }

    /// Sets how an instance is chosen. Default: [`RoundRobinStrategy`].
    pub fn strategy(mut self, strategy: impl ProviderStrategy<P> + 'static) -> Self {
        self.strategy = Box::new(strategy);
        self
    }

    /// Leaves out the instances for which the function returns `false`. Several filters hold
    /// together. Default: those that are not enabled are left out.
    pub fn filter(
        mut self,
        filter: impl Fn(&ServiceInstance<P>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Sets when instances with errors are left out. Default: after 2 errors within 30 s.
    pub const fn down_instance_policy(mut self, policy: DownInstancePolicy) -> Self {
        self.policy = policy;
        self
    }
}

impl<P: DeserializeOwned> ServiceProviderBuilder<P> {
    /// Starts the provider.
    ///
    /// # Errors
    /// Those of [`ServiceDiscovery::cache`].
    pub fn start(self) -> Result<ServiceProvider<P>, DiscoveryError> {
        Ok(ServiceProvider {
            cache: self.discovery.cache(&self.name)?,
            client: self.discovery.client().clone(),
            strategy: self.strategy,
            filters: self.filters,
            policy: self.policy,
            errors: Mutex::default(),
        })
    }
}

impl<P> fmt::Debug for ServiceProviderBuilder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceProviderBuilder")
            .field("name", &self.name)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Chooses an instance of a service for each request. Curator's class of the same name.
///
/// It reads a [`ServiceCache`], so choosing waits for nothing. Do not keep the instance: ask again
/// for each request, and report those that did not work with [`ServiceProvider::note_error`].
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, client| {
/// use minikeeper_recipes::{RandomStrategy, ServiceDiscovery, ServiceInstance, StickyStrategy};
///
/// let discovery: ServiceDiscovery = ServiceDiscovery::new(client, "/services")?;
/// discovery.register(ServiceInstance::new("print").address("10.0.0.7")).await?;
///
/// let printers = discovery
///     .provider("print")
///     .strategy(StickyStrategy::new(RandomStrategy))
///     .filter(|printer| printer.address.is_some())
///     .start()?;
/// printers.initialized().await?;
/// let printer = printers.instance().ok_or("one is registered")?;
/// printers.note_error(&printer); // it did not answer
/// # Ok(()) });
/// ```
pub struct ServiceProvider<P = Value> {
    cache: ServiceCache<P>,
    client: Client,
    strategy: Box<dyn ProviderStrategy<P>>,
    filters: Vec<InstanceFilter<P>>,
    policy: DownInstancePolicy,
    /// The errors of instances that are in the cache.
    errors: Mutex<BTreeMap<InstanceKey, InstanceErrors>>,
}

/// The id and the time of a registration: an instance that was registered anew has no errors yet.
type InstanceKey = (String, i64);

struct InstanceErrors {
    count: u32,
    first: Instant,
}

impl<P: DeserializeOwned> ServiceProvider<P> {
    /// Returns all instances that may be chosen: enabled, not down, and past all filters.
    #[must_use]
    pub fn all_instances(&self) -> Vec<Arc<ServiceInstance<P>>> {
        let now = clock::now();
        let errors = self.errors.lock();
        let is_down = |instance: &ServiceInstance<P>| {
            let errors = errors.get(&key_of(instance));
            errors.is_some_and(|errors| {
                errors.count >= self.policy.error_threshold && self.counts(errors, now)
            })
        };
        let may_be_chosen = |instance: &&Arc<ServiceInstance<P>>| {
            let is_past = self.filters.iter().all(|filter| filter(instance));
            instance.enabled && is_past && !is_down(instance)
        };
        let all = self.cache.instances();
        all.instances
            .iter()
            .filter(may_be_chosen)
            .cloned()
            .collect()
    }

    /// Chooses an instance; `None` if there is none that may be chosen.
    #[must_use]
    pub fn instance(&self) -> Option<Arc<ServiceInstance<P>>> {
        let mut all = self.all_instances();
        let at = self.strategy.choose(&all, random(&self.client))?;
        (at < all.len()).then(|| all.swap_remove(at))
    }

    /// Reports that an instance did not work. After
    /// [`DownInstancePolicy::error_threshold`] errors it is left out for a while. One that is no
    /// longer registered is forgotten.
    pub fn note_error(&self, instance: &ServiceInstance<P>) {
        let now = clock::now();
        let known: Vec<_> = self.cache.instances().instances.clone();
        let mut errors = self.errors.lock();
        let first = InstanceErrors {
            count: 0,
            first: now,
        };
        errors.retain(|_, errors| self.counts(errors, now));
        let noted = errors.entry(key_of(instance)).or_insert(first);
        noted.count = noted.count.saturating_add(1);
        // So the list is never longer than that of the instances.
        let is_known = |key: &InstanceKey| known.iter().any(|known| key_of(known) == *key);
        errors.retain(|key, _| is_known(key));
    }

    fn counts(&self, errors: &InstanceErrors, now: Instant) -> bool {
        now.duration_since(errors.first) < self.policy.timeout
    }
}

impl<P> ServiceProvider<P> {
    /// Waits until all instances were read once. Before that, none or only some can be chosen.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// The reason why the cache has ended.
    pub async fn initialized(&self) -> Result<(), CacheError> {
        self.cache.initialized().await
    }

    /// Returns the cache that it chooses from.
    #[must_use]
    pub const fn cache(&self) -> &ServiceCache<P> {
        &self.cache
    }

    /// Ends the cache. The last known instances can still be chosen.
    ///
    /// # Cancel safety
    /// Once polled, closing continues when the future is dropped.
    pub async fn close(&self) {
        self.cache.close().await;
    }
}

impl<P> fmt::Debug for ServiceProvider<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceProvider")
            .field("cache", &self.cache)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

fn key_of<P>(instance: &ServiceInstance<P>) -> InstanceKey {
    (instance.id.clone(), instance.registration_time_utc)
}

/// Returns a random number of the client, which is the same again in a simulation.
fn random(client: &Client) -> u64 {
    u64::try_from(client.random() >> 64).unwrap_or_default()
}
