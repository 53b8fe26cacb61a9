//! The access lists of new znodes.

use std::sync::Arc;

use minikeeper_client::{AclList, AclProvider, CreateOptions};

/// Chooses access lists: the provider's, or open to all clients.
#[derive(Clone, Default)]
pub(crate) struct Access(pub(crate) Option<Arc<dyn AclProvider>>);

impl Access {
    pub(crate) fn acl_for(&self, path: &str, options: &CreateOptions) -> AclList {
        let chosen = || self.0.as_ref().map(|provider| provider.acl(path));
        let named = options.access_list().cloned();
        named.or_else(chosen).unwrap_or_else(AclList::world_all)
    }
}
