//! In which ways a path can be watched.
//!
//! Source: `docs/zookeeper-protocol.md` sections 12.1 and 12.7.

use minikeeper_protocol::WatcherType;

/// How a watch was registered: a set of bits, for one path may be watched in several ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Modes(u8);

impl Modes {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const STANDARD: Self = Self(1);
    pub(crate) const PERSISTENT: Self = Self(2);
    pub(crate) const RECURSIVE: Self = Self(4);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The two tables a watch can be in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// Set by reading data and asking for existence.
    Data,
    /// Set by listing children.
    Child,
}

/// The modes a request registers, in each of the two tables. Source: `docs/zookeeper-protocol.md`
/// section 12.1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    pub(crate) data: Modes,
    pub(crate) child: Modes,
}

impl Registration {
    /// getData and exists.
    pub(crate) const DATA: Self = Self {
        data: Modes::STANDARD,
        child: Modes::NONE,
    };
    /// getChildren.
    pub(crate) const CHILD: Self = Self {
        data: Modes::NONE,
        child: Modes::STANDARD,
    };
    /// addWatch, persistent.
    pub(crate) const PERSISTENT: Self = Self {
        data: Modes::PERSISTENT,
        child: Modes::PERSISTENT,
    };
    /// addWatch, persistent recursive.
    pub(crate) const RECURSIVE: Self = Self {
        data: Modes::RECURSIVE,
        child: Modes::NONE,
    };

    /// What removeWatches takes away. Source: `docs/zookeeper-protocol.md` section 12.7.
    pub(crate) const fn of_type(kind: WatcherType) -> Self {
        match kind {
            WatcherType::Children => Self::CHILD,
            WatcherType::Data => Self::DATA,
            WatcherType::Persistent => Self::PERSISTENT,
            WatcherType::PersistentRecursive => Self::RECURSIVE,
            WatcherType::Any => Self {
                data: Modes(7),
                child: Modes(7),
            },
        }
    }
}

impl std::fmt::Display for Modes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        let names = [
            (Self::STANDARD, "one-shot"),
            (Self::PERSISTENT, "persistent"),
            (Self::RECURSIVE, "recursive"),
        ];
        let mut separator = "";
        for (mode, name) in names {
            if self.has(mode) {
                write!(f, "{separator}{name}")?;
                separator = "+";
            }
        }
        Ok(())
    }
}
