//! Everything the tests work on, made once from a seed and held in memory.

use super::archive::Archive;
use super::generated;
use super::program::Program;
use super::sizes::Sizes;

/// See the module's head.
#[derive(Debug)]
pub struct Material {
    pub(super) seed: u64,
    pub(super) sizes: Sizes,
    pub(super) program: Program,
    pub(super) archive: Archive,
    /// Of tests 8 and 9, and of test 10.
    pub(super) big: [Vec<u8>; 2],
    pub(super) random: Vec<u8>,
}

impl Material {
    pub fn generate(seed: u64, sizes: Sizes) -> Self {
        Self {
            seed,
            sizes,
            program: Program::generate(seed, &sizes),
            archive: Archive::generate(seed, &sizes),
            big: ["big", "other big"].map(|name| generated::bytes(seed, name, sizes.big_bytes)),
            random: generated::bytes(seed, "random", sizes.random_bytes),
        }
    }

    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The names of the listed files, by directory.
    pub(super) fn listed(&self) -> impl Iterator<Item = (String, Vec<String>)> + use<> {
        let (dirs, files) = (self.sizes.listed_dirs, self.sizes.listed_files);
        (0..dirs).map(move |dir| {
            let names = (0..files).map(|file| format!("file{file:03}")).collect();
            (format!("list{dir:02}"), names)
        })
    }

    /// Offsets and lengths of the reads of test 11.
    pub(super) fn reads(&self) -> Vec<(u64, usize)> {
        let mut rng = generated::rng(self.seed, "reads");
        let sizes = &self.sizes;
        let read = |_| {
            let most = u64::from(sizes.random_read_bytes_max).min(sizes.random_bytes);
            let len = rng.u64(1..=most.max(1));
            (rng.u64(..=sizes.random_bytes - len), usize::try_from(len).unwrap_or(0))
        };
        (0..sizes.random_reads).map(read).collect()
    }

    /// The integers of tests 12 and 13 one after the other, as text.
    pub(super) fn integers(count: u32) -> Vec<u8> {
        (1..=count).flat_map(|number| number.to_string().into_bytes()).collect()
    }
}
