//! A cache as a splitter of the stream of calls: some end here, the others go on to the disks.
//!
//! A benchmark that scales its data with its load (10 MB made and 1 MB accessed for each call a
//! second in SFS) makes the cache the less useful the faster the server is:
//!
//! ```text
//! P_hit = min(1, cache / (accessed for each call a second x rate))
//! ```
//!
//! Source: Martin & Culler 1999, section 4.1. Memory and NVRAM are added up there.

use crate::model::error::{ModelError, not_negative, share};

/// See the module's head. Valid by construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cache {
    cache_bytes: f64,
    accessed_bytes: f64,
    accessed_bytes_per_op_s: f64,
    bypass: f64,
}

impl Cache {
    /// A cache of so many bytes; the data accessed grow with the rate, by so many bytes for each
    /// call a second.
    pub fn scaled(cache_bytes: f64, accessed_bytes_per_op_s: f64) -> Result<Self, ModelError> {
        Ok(Self {
            cache_bytes: not_negative("cache", cache_bytes)?,
            accessed_bytes: 0.0,
            accessed_bytes_per_op_s: not_negative("accessed set", accessed_bytes_per_op_s)?,
            bypass: 0.0,
        })
    }

    /// A cache of so many bytes before a set of a fixed size, whatever the rate.
    pub fn fixed(cache_bytes: f64, accessed_bytes: f64) -> Result<Self, ModelError> {
        let accessed_bytes = not_negative("accessed set", accessed_bytes)?;
        Ok(Self { accessed_bytes, ..Self::scaled(cache_bytes, 0.0)? })
    }

    /// The same, where this share of all calls goes to the disks in any case: writes without
    /// NVRAM, which the paper names and leaves out.
    pub fn with_bypass(self, bypass: f64) -> Result<Self, ModelError> {
        Ok(Self { bypass: share("bypass", bypass)?, ..self })
    }

    /// The same with another size.
    pub fn with_bytes(self, cache_bytes: f64) -> Result<Self, ModelError> {
        Ok(Self { cache_bytes: not_negative("cache", cache_bytes)?, ..self })
    }

    pub fn bytes(&self) -> f64 {
        self.cache_bytes
    }

    /// P_miss at a rate: the share of calls that go to the disks.
    pub fn misses(&self, per_s: f64) -> f64 {
        let accessed = self.accessed_bytes + self.accessed_bytes_per_op_s * per_s;
        let hit = if accessed > self.cache_bytes { self.cache_bytes / accessed } else { 1.0 };
        self.bypass + (1.0 - self.bypass) * (1.0 - hit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_hit_and_what_does_not_is_hit_in_proportion() {
        let cache = Cache::scaled(512.0, 1.0).unwrap();
        assert_eq!(cache.misses(0.0), 0.0);
        assert_eq!(cache.misses(512.0), 0.0);
        assert_eq!(cache.misses(1024.0), 0.5);
        assert_eq!(cache.with_bypass(0.1).unwrap().misses(1024.0), 0.55);
        assert_eq!(cache.with_bytes(0.0).unwrap().misses(1.0), 1.0);
    }

    #[test]
    fn a_fixed_set_has_one_probability_at_all_rates() {
        let cache = Cache::fixed(64.0, 256.0).unwrap();
        assert_eq!(cache.misses(0.0), 0.75);
        assert_eq!(cache.misses(1e9), 0.75);
        assert_eq!(Cache::fixed(64.0, 64.0).unwrap().misses(1e9), 0.0);
    }

    #[test]
    fn sizes_and_shares_that_cannot_be_are_refused() {
        assert!(Cache::scaled(-1.0, 1.0).is_err());
        assert!(Cache::scaled(1.0, f64::NAN).is_err());
        assert!(Cache::fixed(1.0, f64::INFINITY).is_err());
        assert!(Cache::scaled(1.0, 1.0).unwrap().with_bypass(1.5).is_err());
    }
}
