//! What is staged: a fault, and for one at the client what is served, how it is mounted and what
//! works there.

/// A fault, and what is to be found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    pub(super) name: &'static str,
    /// What was staged, in words.
    pub(super) about: &'static str,
    pub(super) layer: &'static str,
    /// Rules of which each names the cause.
    pub(super) causes: &'static [&'static str],
}

pub(super) const fn staged(
    name: &'static str,
    about: &'static str,
    layer: &'static str,
    causes: &'static [&'static str],
) -> Staged {
    Staged { name, about, layer, causes }
}

/// Nothing is wrong, and nothing is to be found.
pub(super) const fn well(name: &'static str) -> Staged {
    staged(name, "", "", &[])
}

/// What is staged. Texts for the guest are of bash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// What our server is started with.
    pub(super) serve: &'static [&'static str],
    /// What is done to the guest before it mounts, and how that is undone.
    pub(super) guest: [&'static str; 2],
    /// Options of the mount.
    pub(super) mount: &'static str,
    /// What is read ahead, KiB.
    pub(super) read_ahead_kib: u32,
    /// The server stops before doctor looks, and goes on behind it.
    pub(super) server_stops: bool,
    pub(super) load: Load,
}

/// What works there (`scripts/load.py`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) kind: &'static str,
    pub(super) threads: u32,
    /// Bytes of a piece.
    pub(super) size: u32,
}

pub(super) const fn load(kind: &'static str, threads: u32, size: u32) -> Load {
    Load { kind, threads, size }
}

/// One that is well.
pub(super) const HEALTHY: Setup = Setup {
    serve: &["mem:"],
    guest: ["", ""],
    mount: "",
    // 15 times rsize, as nfsrahead(5) sets it and kernels did before 5.4.
    read_ahead_kib: 15_360,
    server_stops: false,
    load: load("read-direct", 1, 65_536),
};

#[derive(Clone, Copy, Debug)]
pub(super) struct Scene {
    pub(super) staged: Staged,
    pub(super) setup: Setup,
    /// The same with the remedy applied, and what that was.
    pub(super) remedied: Option<(&'static str, Setup)>,
}
