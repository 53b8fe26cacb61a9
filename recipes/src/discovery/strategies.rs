//! How a provider chooses an instance.
//!
//! Source: Curator's `RandomStrategy`, `RoundRobinStrategy` and `StickyStrategy`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use serde_json::Value;

use super::instance::ServiceInstance;

/// How a provider chooses an instance. Curator's interface of the same name.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use minikeeper_recipes::{ProviderStrategy, ServiceInstance};
///
/// /// Chooses the instance that was registered first.
/// struct Oldest;
///
/// impl<P> ProviderStrategy<P> for Oldest {
///     fn choose(&self, instances: &[Arc<ServiceInstance<P>>], _random: u64) -> Option<usize> {
///         let age = |at: &usize| instances[*at].registration_time_utc;
///         (0..instances.len()).min_by_key(age)
///     }
/// }
/// ```
pub trait ProviderStrategy<P = Value>: Send + Sync {
    /// Returns the index of the chosen instance, `None` if there is none. `random` is a new random
    /// number for each call.
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>], random: u64) -> Option<usize>;
}

/// Chooses any instance, with equal chances.
#[derive(Clone, Copy, Default, Debug)]
pub struct RandomStrategy;

impl<P> ProviderStrategy<P> for RandomStrategy {
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>], random: u64) -> Option<usize> {
        modulo(random, instances.len())
    }
}

/// Chooses one instance after the other.
#[derive(Default, Debug)]
pub struct RoundRobinStrategy {
    next: AtomicUsize,
}

impl<P> ProviderStrategy<P> for RoundRobinStrategy {
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>], _random: u64) -> Option<usize> {
        // It wraps around (hazard H67).
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        next.checked_rem(instances.len())
    }
}

/// Chooses the same instance as long as it is there, then another one by the inner strategy. An
/// update of the instance changes nothing.
#[derive(Default, Debug)]
pub struct StickyStrategy<S> {
    inner: S,
    /// The name and id of the instance.
    chosen: Mutex<Option<(String, String)>>,
}

impl<S> StickyStrategy<S> {
    /// Creates the strategy.
    pub const fn new(inner: S) -> Self {
        Self {
            inner,
            chosen: Mutex::new(None),
        }
    }
}

impl<P, S: ProviderStrategy<P>> ProviderStrategy<P> for StickyStrategy<S> {
    fn choose(&self, instances: &[Arc<ServiceInstance<P>>], random: u64) -> Option<usize> {
        let mut chosen = self.chosen.lock();
        if let Some((name, id)) = &*chosen {
            let is_chosen = |one: &Arc<ServiceInstance<P>>| one.id == *id && one.name == *name;
            if let Some(at) = instances.iter().position(is_chosen) {
                return Some(at);
            }
        }
        let at = self.inner.choose(instances, random);
        let instance = at.and_then(|at| instances.get(at));
        *chosen = instance.map(|instance| (instance.name.clone(), instance.id.clone()));
        at
    }
}

fn modulo(random: u64, length: usize) -> Option<usize> {
    let rest = random.checked_rem(u64::try_from(length).ok()?)?;
    usize::try_from(rest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<Arc<ServiceInstance>> {
        let one = |id| Arc::new(ServiceInstance::new("print").id(id));
        ["a", "b", "c"].map(one).to_vec()
    }

    #[test]
    fn without_instances_none_is_chosen() {
        let none: &[Arc<ServiceInstance>] = &[];
        assert_eq!(RandomStrategy.choose(none, 7), None);
        assert_eq!(RoundRobinStrategy::default().choose(none, 7), None);
        assert_eq!(StickyStrategy::new(RandomStrategy).choose(none, 7), None);
    }

    /// Curator takes the absolute value of an `int` that wraps around, and
    /// `Math.abs(Integer.MIN_VALUE)` is negative: one call of 2^32 fails with an index out of bounds.
    #[test]
    fn h67_round_robin_wraps_around_where_curators_index_becomes_negative() {
        let strategy = RoundRobinStrategy {
            next: AtomicUsize::new(usize::MAX - 1),
        };
        let all = three();
        for _ in 0..4 {
            assert!(strategy.choose(&all, 0).is_some_and(|at| at < 3));
        }
        let chosen: Vec<_> = (0..3).map(|_| strategy.choose(&all, 0)).collect();
        assert_eq!(chosen, [Some(2), Some(0), Some(1)]);
    }

    /// Curator compares whole instances, so that an update loses the chosen one.
    #[test]
    fn h68_sticky_keeps_an_instance_that_was_updated() {
        let strategy = StickyStrategy::new(RoundRobinStrategy::default());
        let mut all = three();
        assert_eq!(strategy.choose(&all, 0), Some(0));
        all[0] = Arc::new(ServiceInstance::clone(&all[0]).port(1));
        assert_eq!(strategy.choose(&all, 0), Some(0));
        all.remove(0);
        assert_eq!(strategy.choose(&all, 0), Some(1));
        assert_eq!(strategy.choose(&all, 0), Some(1));
    }

    #[test]
    fn random_reaches_every_instance() {
        let all = three();
        let chosen: Vec<_> = [3, 7, u64::MAX]
            .map(|random| RandomStrategy.choose(&all, random))
            .to_vec();
        assert_eq!(chosen, [Some(0), Some(1), Some(0)]);
    }
}
