//! Instances of one service: each contender registers one, changes it, and must find it.

use std::{sync::Arc, time::Duration};

use minikeeper_recipes::{ServiceDiscovery, ServiceInstance, ServiceProvider, ServiceType};
use tokio::time::{sleep, timeout};

use crate::sim::contender::Contender;

const BASE: &str = "/services";
const NAME: &str = "app";
const TYPES: [ServiceType; 4] = [
    ServiceType::Dynamic,
    ServiceType::DynamicSequential,
    ServiceType::Static,
    ServiceType::Permanent,
];

pub(super) async fn contend(mut me: Contender) {
    let discovery: ServiceDiscovery = ServiceDiscovery::new(me.client.clone(), BASE).unwrap();
    let mut provider = start(&discovery);
    while me.next_round().await {
        let at = usize::try_from(me.chance.below(4)).unwrap_or_default();
        let instance = ServiceInstance::new(NAME)
            .id(me.who.to_string())
            .service_type(TYPES[at]);
        let register = discovery.register(instance);
        let registered = if me.is_last {
            me.must("registering", register).await
        } else {
            timeout(me.chance.millis(8_000), register).await.ok()
        };
        let mine = match registered {
            Some(Ok(mine)) => mine,
            Some(Err(error)) => {
                me.failed(format!("{} cannot register: {error}", me.who));
                continue;
            }
            None => {
                me.judge.event("not registered yet");
                continue;
            }
        };
        me.judge.gained("instance");
        let changed = ServiceInstance::clone(&mine).port(80);
        let update = discovery.update(changed);
        let updated = if me.is_last {
            me.must("an update", update).await
        } else {
            timeout(me.chance.millis(4_000), update).await.ok()
        };
        if provider.cache().znodes().end().is_some() {
            provider = start(&discovery);
        }
        match updated {
            Some(Ok(mine)) if me.is_last => {
                let found = found(&me, &discovery, &mut provider, &mine);
                me.must("finding its instance", found).await;
            }
            Some(Ok(_)) => sleep(me.chance.millis(2_000)).await,
            Some(Err(error)) => me.failed(format!("{} cannot update: {error}", me.who)),
            None => me.judge.event("not updated yet"),
        }
        if me.chance.once_in(3) && !me.is_last {
            continue;
        }
        match me.must("unregistering", discovery.unregister(&mine)).await {
            Some(Err(error)) if me.is_last => {
                me.failed(format!("{} cannot unregister: {error}", me.who));
            }
            _ => {}
        }
    }
    let _ = me.must("closing the discovery", discovery.close()).await;
    me.must("closing the provider", provider.close()).await;
}

fn start(discovery: &ServiceDiscovery) -> ServiceProvider {
    discovery.provider(NAME).start().unwrap()
}

/// Waits until a query and the provider have the instance, once and as it is.
async fn found(
    me: &Contender,
    discovery: &ServiceDiscovery,
    provider: &mut ServiceProvider,
    mine: &Arc<ServiceInstance>,
) {
    let is_it = |instances: &[Arc<ServiceInstance>]| {
        let with_id = instances.iter().filter(|other| other.id == mine.id);
        with_id.eq([mine])
    };
    loop {
        if let Some(end) = provider.cache().znodes().end() {
            me.failed(format!("{}: the cache has ended: {end}", me.who));
            *provider = start(discovery);
        }
        match discovery.query_for_instances(NAME).await {
            Ok(found) if is_it(&found.instances) && is_it(&provider.all_instances()) => {
                return;
            }
            Ok(found) if !found.damaged.is_empty() => {
                me.judge.violation(format!("{:?}", found.damaged));
            }
            Ok(_) => {}
            Err(error) => me.failed(format!("{} cannot query: {error}", me.who)),
        }
        sleep(Duration::from_millis(20)).await;
    }
}
