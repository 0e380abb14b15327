//! Worlds: production code in seeded virtual time, for tests.
