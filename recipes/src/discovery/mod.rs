//! Service discovery: instances of services in znodes, as Curator's curator-x-discovery keeps them.
//!
//! | file | contents |
//! | --- | --- |
//! | `instance.rs`, `uri_spec.rs` | an instance and its JSON; the template of its address |
//! | `service_discovery.rs` | registering instances, and reading those of all processes |
//! | `service_cache.rs` | the instances of one service, from a cache |
//! | `service_provider.rs`, `strategies.rs` | choosing one of them |
//!
//! An instance is the znode `BASE/NAME/ID`. Java reads what Rust registers, and the other way.

mod instance;
mod service_cache;
mod service_discovery;
mod service_provider;
mod strategies;
mod uri_spec;

pub use self::{
    instance::{InstanceError, ServiceInstance, ServiceType},
    service_cache::{DamagedInstance, ServiceCache, ServiceChanges, ServiceInstances},
    service_discovery::{DiscoveryError, ServiceDiscovery},
    service_provider::{DownInstancePolicy, ServiceProvider, ServiceProviderBuilder},
    strategies::{ProviderStrategy, RandomStrategy, RoundRobinStrategy, StickyStrategy},
    uri_spec::{UriPart, UriSpec, UriSpecError},
};
