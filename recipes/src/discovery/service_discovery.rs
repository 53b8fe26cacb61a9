//! Registering instances, and reading those of all processes.
//!
//! Source: Curator's `ServiceDiscoveryImpl`.

use std::{collections::BTreeMap, fmt, sync::Arc};

use minikeeper_client::{Client, CreateMode, Error, ErrorCode, SessionId, ZnodePath};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    instance::{InstanceError, ServiceInstance},
    service_cache::{ServiceCache, ServiceInstances},
    service_provider::ServiceProviderBuilder,
};
use crate::{
    call_limit::CallLimit,
    client::{names, new_id},
    clock,
    error::LockError,
    options::LockOptions,
    queue::{
        contending::{Queue, Wait},
        naming,
        pace::Pace,
    },
    values::PersistentNode,
};

/// How often a registration deletes the znode of another session that creates it again.
const REGISTERS_MAX: u32 = 3;

/// The number of instances that a query reads at the same time.
const IN_FLIGHT_MAX: usize = 256;

/// The limit of the data that one query reads: some 200,000 instances of the usual size.
const QUERY_BYTES_MAX: usize = 64 << 20;

/// Registers instances of services, and finds those of all processes. It works like Curator's class
/// of the same name, on the same znodes.
///
/// A registration survives lost connections and sessions: a background task creates the znode again.
/// Closing this, or dropping all clones, deletes the znodes of all registrations, whatever their
/// type, as Curator's `close` does. If the process dies, the ephemeral ones end with its session.
///
/// Cheap to clone. Clones share the registrations.
///
/// # Examples
/// ```
/// # minikeeper_test_kit::example(async |server, _| {
/// # let address = server.connect_string();
/// use minikeeper_client::Client;
/// use minikeeper_recipes::{ServiceDiscovery, ServiceInstance};
///
/// let client = Client::connect(&address).await?;
/// let discovery: ServiceDiscovery = ServiceDiscovery::new(client, "/services")?;
/// let here = ServiceInstance::new("print").address("10.0.0.7").port(8080);
/// let here = discovery.register(here).await?;
///
/// let found = discovery.query_for_instances("print").await?;
/// assert_eq!(found.instances, [here]);
/// discovery.close().await?;
/// # Ok(()) });
/// ```
pub struct ServiceDiscovery<P = Value> {
    shared: Arc<DiscoveryShared<P>>,
}

struct DiscoveryShared<P> {
    client: Client,
    base: String,
    /// The registrations by name and id.
    registered: Mutex<BTreeMap<(String, String), Registration<P>>>,
}

struct Registration<P> {
    instance: Arc<ServiceInstance<P>>,
    node: Arc<PersistentNode>,
}

/// The reason why an instance was not registered or found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The name of a service or the id of an instance cannot be the name of a znode.
    #[error(
        "{what} {name:?} is no name of a znode; it must not be empty, \".\" or \"..\", nor have '/' \
         or control characters"
    )]
    Name {
        /// What the name is for.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// This discovery has not registered the instance. Register it first.
    #[error("service {name:?}: instance {id:?} is not registered here; register it first")]
    NotRegistered {
        /// The name of the service.
        name: String,
        /// The id of the instance.
        id: String,
    },
    /// Another session has an instance of this name and id: it registers it again whenever it is
    /// deleted, or has taken over the one that was registered here. Choose another id, or unregister the
    /// other one first.
    #[error(
        "instance {path:?}: session {owner} has registered it, and lives; choose another id, or \
         unregister the other one first"
    )]
    Taken {
        /// The path of the znode.
        path: String,
        /// The session.
        owner: SessionId,
    },
    /// The payload of an instance has no JSON.
    #[error("service {name:?}: instance {id:?} has no JSON")]
    Unwritable {
        /// The name of the service.
        name: String,
        /// The id of the instance.
        id: String,
        /// The cause.
        source: InstanceError,
    },
    /// The znode holds something other than an instance.
    #[error("instance {path:?} is damaged")]
    Damaged {
        /// The path of the znode.
        path: String,
        /// The cause.
        source: InstanceError,
    },
    /// The instances of a service have more data than a query reads.
    #[error(
        "service {path:?}: its instances have more than {bytes_max} bytes, the limit of a query; \
         remove what is no instance"
    )]
    TooLarge {
        /// The path of the service.
        path: String,
        /// The limit.
        bytes_max: usize,
    },
    /// A request failed: a server refused it for a reason that a retry does not change, or the
    /// client is closed.
    #[error(transparent)]
    Failed(#[from] LockError),
}

impl From<Error> for DiscoveryError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl<P> ServiceDiscovery<P> {
    /// Creates a discovery below this path. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Path`] if the path is invalid.
    pub fn new(client: Client, base_path: &str) -> Result<Self, Error> {
        ZnodePath::new(base_path)?;
        let shared = DiscoveryShared {
            client,
            base: base_path.to_owned(),
            registered: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Returns the instances that are registered here, sorted by name and id.
    #[must_use]
    pub fn registered(&self) -> Vec<Arc<ServiceInstance<P>>> {
        let registered = self.shared.registered.lock();
        let instances = registered.values().map(|entry| Arc::clone(&entry.instance));
        instances.collect()
    }

    /// Returns the node of a registration, which tells whether its znode exists now; with
    /// [`PersistentNode::created`] why the registration has ended: a server has refused to create
    /// the znode again; and with [`PersistentNode::taken_by`] whether another session has taken over
    /// the id. `None` if the instance is not registered here.
    #[must_use]
    pub fn node(&self, instance: &ServiceInstance<P>) -> Option<Arc<PersistentNode>> {
        let key = (instance.name.clone(), instance.id.clone());
        let registered = self.shared.registered.lock();
        registered.get(&key).map(|entry| Arc::clone(&entry.node))
    }

    /// Ends the registration of an instance, and waits until its znode is deleted. Does nothing if
    /// the instance is not registered here. Waits for a connection.
    ///
    /// # Cancel safety
    /// Once polled, it continues when the future is dropped.
    ///
    /// # Errors
    /// [`DiscoveryError::Failed`] when a server refuses or the client is closed.
    pub async fn unregister(&self, instance: &ServiceInstance<P>) -> Result<(), DiscoveryError> {
        let path = self.shared.path_of(&instance.name, &instance.id)?;
        let call = "ServiceDiscovery::unregister";
        let end = self.end(&instance.name, &instance.id);
        CallLimit::background(&self.shared.client, call, &path)
            .run(end)
            .await
    }

    /// Ends a registration. It stays known until its znode is deleted, so that a call that fails can
    /// be made again.
    async fn end(&self, name: &str, id: &str) -> Result<(), DiscoveryError> {
        let key = (name.to_owned(), id.to_owned());
        let Some(registration) = self.shared.registered.lock().get(&key).cloned() else {
            return Ok(());
        };
        self.shared.close_node(name, id, &registration).await?;
        self.shared.forget(&key, &registration.node);
        Ok(())
    }

    /// Ends all registrations, and waits until their znodes are deleted. Waits for a connection.
    /// Caches and providers remain.
    ///
    /// # Cancel safety
    /// Once polled, it continues when the future is dropped.
    ///
    /// # Errors
    /// [`DiscoveryError::Failed`] when a server refuses or the client is closed: the first such
    /// error, after all registrations have ended.
    pub async fn close(&self) -> Result<(), DiscoveryError> {
        let all: Vec<_> = self.shared.registered.lock().keys().cloned().collect();
        let end_all = async {
            let mut result = Ok(());
            for (name, id) in &all {
                result = result.and(self.end(name, id).await);
            }
            result
        };
        let limit = CallLimit::background(
            &self.shared.client,
            "ServiceDiscovery::close",
            &self.shared.base,
        );
        limit.run(end_all).await
    }

    /// Reads the names of all services; none if the base path is missing.
    ///
    /// A name may have no instance left: servers delete empty directories after a while.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`DiscoveryError::Failed`] when a server refuses or the client is closed. A lost connection is
    /// not an error: it waits for the next connection.
    pub async fn query_for_names(&self) -> Result<Vec<String>, DiscoveryError> {
        let Self { shared } = self;
        let call = "ServiceDiscovery::query_for_names";
        CallLimit::read(&shared.client, call, &shared.base)
            .run(self.children(&shared.base))
            .await
    }

    async fn children(&self, path: &str) -> Result<Vec<String>, DiscoveryError> {
        let client = &self.shared.client;
        let list = || client.children(path);
        let children = self.shared.answered(path, list).await?;
        let mut names = children.as_ref().map(names).unwrap_or_default();
        names.sort_unstable();
        Ok(names)
    }
}

impl<P: Serialize> ServiceDiscovery<P> {
    /// Registers an instance, waits until its znode exists, and returns it with its id and time.
    /// Waits for a connection.
    ///
    /// A znode of another session in its place is deleted, as Curator does: a process that starts
    /// again with the same id need not wait for the end of its old session. If the other session lives
    /// and registers its instance again, this tries three times. If this is faster, the other session
    /// has lost the id, see [`PersistentNode::taken_by`]; it registers its instance again once this one
    /// is gone. An instance that is already registered here is registered anew.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready leaves the instance registered or not:
    /// [`ServiceDiscovery::registered`] tells. The registration continues then.
    ///
    /// # Errors
    /// [`DiscoveryError::Name`] if the name or the id cannot be the name of a znode,
    /// [`DiscoveryError::Unwritable`] if the payload has no JSON, [`DiscoveryError::Taken`] if another
    /// session has this id and keeps it, [`DiscoveryError::Failed`] when a server refuses or the client
    /// is closed, or after the client's [`call_timeout`](Client::call_timeout). The instance is not
    /// registered then.
    pub async fn register(
        &self,
        mut instance: ServiceInstance<P>,
    ) -> Result<Arc<ServiceInstance<P>>, DiscoveryError> {
        let DiscoveryShared {
            client, registered, ..
        } = &*self.shared;
        if instance.id.is_empty() {
            instance.id = new_id(client).to_string();
        }
        if instance.registration_time_utc == 0 {
            instance.registration_time_utc = clock::unix_ms();
        }
        let path = self.shared.path_of(&instance.name, &instance.id)?;
        let json = json_of(&instance)?;
        // On an error the instance is unregistered.
        let limit = CallLimit::change(client, "ServiceDiscovery::register", &path);
        let mode = instance.service_type.mode();
        let room = async {
            // If the registration before has failed, this one may succeed.
            let _ = self.end(&instance.name, &instance.id).await;
            self.shared.make_room(&path, mode).await
        };
        limit.clone().run(room).await?;
        let node = PersistentNode::start(client.clone(), &path, &json, mode)?;
        let (node, instance) = (Arc::new(node), Arc::new(instance));
        let key = (instance.name.clone(), instance.id.clone());
        let registration = Registration {
            instance: Arc::clone(&instance),
            node: Arc::clone(&node),
        };
        // A call with the same id may have been faster; its node closes when it is dropped.
        let other = registered.lock().insert(key.clone(), registration);
        drop(other);
        let registered = async {
            let mut stage = node.stages();
            for _ in 0..REGISTERS_MAX {
                if PersistentNode::settled(&mut stage).await?.is_none() {
                    return Ok(());
                }
                self.shared.make_room(&path, mode).await?;
                // The node has not been created, so its task reports something.
                let _ = stage.changed().await;
            }
            match PersistentNode::settled(&mut stage).await? {
                None => Ok(()),
                Some(owner) => {
                    let path = path.clone();
                    Err(DiscoveryError::Taken { path, owner })
                }
            }
        };
        match limit.run(registered).await {
            Ok(()) => Ok(instance),
            Err(error) => {
                self.shared.forget(&key, &node);
                Err(error)
            }
        }
    }

    /// Replaces the data of an instance that is registered here, and waits until its znode has it.
    /// Waits for a connection. The znode keeps its type.
    ///
    /// # Cancel safety
    /// Once polled, the update continues when the future is dropped.
    ///
    /// # Errors
    /// [`DiscoveryError::NotRegistered`] if no instance of this name and id is registered here,
    /// [`DiscoveryError::Unwritable`] if the payload has no JSON, [`DiscoveryError::Taken`] if another
    /// session has taken over the id: the data is written once the other instance is gone.
    /// [`DiscoveryError::Failed`] when a server refuses or the client is closed.
    ///
    /// # Examples
    /// ```
    /// # minikeeper_test_kit::example(async |server, client| {
    /// use minikeeper_recipes::{ServiceDiscovery, ServiceInstance};
    ///
    /// let discovery: ServiceDiscovery<String> = ServiceDiscovery::new(client, "/services")?;
    /// let here = discovery.register(ServiceInstance::new("print").payload("idle")).await?;
    /// let busy = ServiceInstance::clone(&here).payload("busy");
    /// discovery.update(busy).await?;
    /// let found = discovery.query_for_instance("print", &here.id).await?;
    /// assert_eq!(found.and_then(|found| found.payload).as_deref(), Some("busy"));
    /// # Ok(()) });
    /// ```
    pub async fn update(
        &self,
        mut instance: ServiceInstance<P>,
    ) -> Result<Arc<ServiceInstance<P>>, DiscoveryError> {
        let key = (instance.name.clone(), instance.id.clone());
        let (node, instance) = {
            let mut registered = self.shared.registered.lock();
            let Some(entry) = registered.get_mut(&key) else {
                let (name, id) = key;
                return Err(DiscoveryError::NotRegistered { name, id });
            };
            if instance.registration_time_utc == 0 {
                instance.registration_time_utc = entry.instance.registration_time_utc;
            }
            entry.node.set_data(&json_of(&instance)?);
            entry.instance = Arc::new(instance);
            (Arc::clone(&entry.node), Arc::clone(&entry.instance))
        };
        tokio::select! {
            biased;
            updated = node.updated() => drop(updated?),
            Some(owner) = node.taken() => {
                let path = self.shared.path_of(&instance.name, &instance.id)?;
                return Err(DiscoveryError::Taken { path, owner });
            }
        }
        Ok(instance)
    }
}

fn json_of<P: Serialize>(instance: &ServiceInstance<P>) -> Result<Vec<u8>, DiscoveryError> {
    instance
        .to_json()
        .map_err(|source| DiscoveryError::Unwritable {
            name: instance.name.clone(),
            id: instance.id.clone(),
            source,
        })
}

impl<P: DeserializeOwned> ServiceDiscovery<P> {
    /// Reads the instances of a service, sorted by the names of their znodes; none if there is no
    /// such service. Damaged ones are listed apart.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`DiscoveryError::Name`] if the name cannot be the name of a znode, and those of
    /// [`ServiceDiscovery::query_for_names`].
    pub async fn query_for_instances(
        &self,
        name: &str,
    ) -> Result<ServiceInstances<P>, DiscoveryError> {
        let directory = self.shared.directory_of(name)?;
        let call = "ServiceDiscovery::query_for_instances";
        CallLimit::read(&self.shared.client, call, &directory)
            .run(self.instances_in(&directory))
            .await
    }

    async fn instances_in(&self, directory: &str) -> Result<ServiceInstances<P>, DiscoveryError> {
        let client = &self.shared.client;
        let ids = self.children(directory).await?;
        let mut found = ServiceInstances::default();
        let mut bytes = 0;
        for ids in ids.chunks(IN_FLIGHT_MAX) {
            let path_of = |id: &String| naming::join(directory, id);
            let paths: Vec<_> = ids.iter().map(path_of).collect();
            // Collected first: all requests leave before the first reply is awaited.
            let reads: Vec<_> = paths.iter().map(|path| client.get_data(path)).collect();
            for (path, first) in paths.iter().zip(reads) {
                let mut first = Some(first);
                let data = || {
                    let again = || client.get_data(path);
                    first.take().unwrap_or_else(again)
                };
                if let Some(data) = self.shared.answered(path, data).await? {
                    bytes += data.as_bytes().len();
                    if bytes > QUERY_BYTES_MAX {
                        return Err(DiscoveryError::TooLarge {
                            path: directory.to_owned(),
                            bytes_max: QUERY_BYTES_MAX,
                        });
                    }
                    let read = ServiceInstance::from_json(data.as_bytes());
                    found.push(path, read.map(Arc::new));
                }
            }
        }
        Ok(found)
    }

    /// Reads one instance; `None` if it is missing.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// [`DiscoveryError::Name`] if the name or the id cannot be the name of a znode,
    /// [`DiscoveryError::Damaged`] if its data is no instance, and those of
    /// [`ServiceDiscovery::query_for_names`].
    pub async fn query_for_instance(
        &self,
        name: &str,
        id: &str,
    ) -> Result<Option<ServiceInstance<P>>, DiscoveryError> {
        let path = self.shared.path_of(name, id)?;
        let client = &self.shared.client;
        let read = || client.get_data(&path);
        let limit = CallLimit::read(client, "ServiceDiscovery::query_for_instance", &path);
        let Some(data) = limit.run(self.shared.answered(&path, read)).await? else {
            return Ok(None);
        };
        match ServiceInstance::from_json(data.as_bytes()) {
            Ok(instance) => Ok(Some(instance)),
            Err(source) => Err(DiscoveryError::Damaged { path, source }),
        }
    }

    /// Starts a cache of the instances of a service.
    ///
    /// # Errors
    /// [`DiscoveryError::Name`] if the name cannot be the name of a znode. [`Error::NoRuntime`]
    /// outside a tokio runtime.
    pub fn cache(&self, name: &str) -> Result<ServiceCache<P>, DiscoveryError> {
        let directory = self.shared.directory_of(name)?;
        Ok(ServiceCache::start(self.shared.client.clone(), &directory)?)
    }

    /// Returns the settings of a provider, which chooses an instance of a service for each request.
    pub fn provider(&self, name: &str) -> ServiceProviderBuilder<P> {
        ServiceProviderBuilder::new(self.clone(), name)
    }
}

impl<P> Clone for Registration<P> {
    fn clone(&self) -> Self {
        Self {
            instance: Arc::clone(&self.instance),
            node: Arc::clone(&self.node),
        }
    }
}

impl<P> DiscoveryShared<P> {
    /// Removes a registration, unless another one has taken its place.
    fn forget(&self, key: &(String, String), node: &Arc<PersistentNode>) {
        let mut registered = self.registered.lock();
        if (registered.get(key)).is_some_and(|entry| Arc::ptr_eq(&entry.node, node)) {
            registered.remove(key);
        }
    }

    fn directory_of(&self, name: &str) -> Result<String, DiscoveryError> {
        check_name("service", name)?;
        Ok(naming::join(&self.base, name))
    }

    fn path_of(&self, name: &str, id: &str) -> Result<String, DiscoveryError> {
        check_name("instance id", id)?;
        Ok(naming::join(&self.directory_of(name)?, id))
    }

    /// Closes a node. When there is no session for long, the task of a persistent one ends and leaves
    /// its znode behind: then this deletes it.
    async fn close_node(
        &self,
        name: &str,
        id: &str,
        registration: &Registration<P>,
    ) -> Result<(), DiscoveryError> {
        let mode = registration.instance.service_type.mode();
        match registration.node.close().await {
            Err(LockError::Client(error))
                if error.is_retryable() && mode == CreateMode::Persistent =>
            {
                let path = self.path_of(name, id)?;
                let delete = || self.client.delete_for_certain(&path);
                self.answered(&path, delete).await.map(drop)
            }
            closed => Ok(closed?),
        }
    }

    /// Repeats a request until a server answers it; `None` if the znode is missing.
    async fn answered<T, F>(
        &self,
        path: &str,
        mut request: impl FnMut() -> F,
    ) -> Result<Option<T>, DiscoveryError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let options = LockOptions::default();
        let queue = Queue::new("ServiceDiscovery", self.client.clone(), path, options);
        let mut pace = Pace::of(&self.client);
        loop {
            queue.connected(Wait::FOR_EVER).await?;
            match request().await {
                Ok(answer) => return Ok(Some(answer)),
                Err(error) if error.is(ErrorCode::NoNode) => return Ok(None),
                Err(error) if error.is_retryable() => pace.after(&error).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Deletes a znode that is in the place of a registration and belongs to another session, or has
    /// another type.
    async fn make_room(&self, path: &str, mode: CreateMode) -> Result<(), DiscoveryError> {
        let client = &self.client;
        let look = || client.exists(path);
        let seen = self.answered(path, look).await?;
        let Some(stat) = seen.flatten() else {
            return Ok(());
        };
        let is_ours = match mode {
            CreateMode::Persistent => stat.ephemeral_owner.0 == 0,
            CreateMode::Ephemeral => Some(stat.ephemeral_owner) == client.session_id(),
            // A sequential one gets another name.
            _ => true,
        };
        if !is_ours {
            let delete = || client.delete_for_certain(path);
            self.answered(path, delete).await?;
        }
        Ok(())
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), DiscoveryError> {
    let is_component = !name.is_empty() && !name.contains('/');
    if is_component && ZnodePath::new(naming::join("/", name)).is_ok() {
        return Ok(());
    }
    Err(DiscoveryError::Name {
        what,
        name: name.to_owned(),
    })
}

impl<P> Clone for ServiceDiscovery<P> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<P> fmt::Debug for ServiceDiscovery<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceDiscovery")
            .field("base", &self.shared.base)
            .field("registered", &self.shared.registered.lock().keys())
            .finish_non_exhaustive()
    }
}
