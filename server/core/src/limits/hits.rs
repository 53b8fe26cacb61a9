//! Counts how often the engine's limits, and those on output, were reached.

use minikeeper_engine::Limit;

/// Counts how often limits on memory were reached. ZooKeeper does not have these limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct LimitHits {
    pub(crate) sessions: u64,
    pub(crate) watches: u64,
    pub(crate) tree_bytes: u64,
    pub(crate) reply_bytes: u64,
    pub(crate) multi_operations: u64,
    pub(crate) acl_entries: u64,
    pub(crate) identities: u64,
    pub(crate) outboxes: u64,
    pub(crate) unsent: u64,
}

impl LimitHits {
    /// Counts a hit. Returns whether to log it: the first of this limit, then ever more rarely, because a
    /// client may hit a limit in a loop.
    pub(crate) const fn count(&mut self, limit: Limit) -> bool {
        let hits = match limit {
            Limit::Sessions => &mut self.sessions,
            Limit::Watches => &mut self.watches,
            Limit::TreeBytes => &mut self.tree_bytes,
            Limit::ReplyBytes => &mut self.reply_bytes,
            Limit::MultiOperations => &mut self.multi_operations,
            Limit::AclEntries => &mut self.acl_entries,
            Limit::Identities => &mut self.identities,
        };
        *hits += 1;
        hits.is_power_of_two()
    }
}
