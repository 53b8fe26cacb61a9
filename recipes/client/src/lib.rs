//! An async ZooKeeper client, built for lock recipes: not written yet.
