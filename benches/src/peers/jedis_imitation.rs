//! An imitation of Redisson on a plain client, with the defects it was published with.
