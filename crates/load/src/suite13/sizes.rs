//! How much each test does: as in the paper, or a share of it for a quick look.

/// Files and numbers of the tests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sizes {
    /// C files of the package, besides the one that has `main`; as many headers, and one more.
    pub parts: u32,
    /// Functions of each, which make its length.
    pub functions: u32,
    /// Of the hierarchy that is copied into, with its top.
    pub dirs: u32,
    pub archive_bytes: u64,
    pub archive_dirs: u32,
    pub archive_files: u32,
    pub listed_dirs: u32,
    /// In each of them.
    pub listed_files: u32,
    pub listings: u32,
    pub big_bytes: u64,
    pub random_bytes: u64,
    pub random_reads: u32,
    pub random_read_bytes_max: u32,
    pub small_writes: u32,
    pub small_rewrites: u32,
}

const MB: f64 = 1_048_576.0;

impl Sizes {
    /// The paper's, times `scale`; what is a number of things is one of them at least.
    pub fn scaled(scale: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and a conversion of floats saturates"
        )]
        let count = |paper: u32| ((f64::from(paper) * scale).round() as u32).max(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and a conversion of floats saturates"
        )]
        let bytes = |paper_mb: f64| ((paper_mb * MB * scale) as u64).max(16 << 10);
        Self {
            parts: count(33),
            functions: 12,
            dirs: count(21).max(3),
            archive_bytes: bytes(4.3),
            archive_dirs: count(40),
            archive_files: count(360),
            listed_dirs: count(10),
            listed_files: 50,
            listings: 4,
            big_bytes: bytes(6.1),
            random_bytes: bytes(4.3),
            random_reads: count(1_000),
            random_read_bytes_max: 2_663,
            small_writes: count(2_000),
            small_rewrites: count(1_000),
        }
    }

    /// Files of the package.
    pub fn files(&self) -> u32 {
        2 * self.parts + 5
    }
}
