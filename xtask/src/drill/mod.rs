//! `cargo xtask drill`: faults that are staged, and what `nfskit doctor` says of them.
//!
//! ```text
//!   guest, user-mode Linux                              this side of the tap
//!   the kernel's client, load.py, doctor  ── netem ──   nfskit serve, nfskit link
//!   the kernel's server, doctor           ── tap ────   nfskit bench, and doctor behind a firewall
//! ```
//!
//! Each fault is real: the network is slow or loses, the disk has a delay, the limit is set, the
//! program does that. While the load goes on, doctor looks twice at the counters, and its first
//! finding is compared with what was staged: the layer must be right in all, the cause in all but
//! two. On healthy runs nothing of high severity may be found.
//!
//! Of some faults the remedy is applied, and the same load runs again: what doctor predicted stands
//! beside what was measured.

mod answer;
mod faults;
mod healthy;
mod options;
mod outcome;
mod phases;
mod scene;
mod serving;
mod stage;

use std::path::Path;

use self::options::Options;
use self::outcome::Outcome;
use self::stage::Stage;
use crate::guest::image::Image;
use crate::guest::shell;
use crate::host::{build, isolate, scratch};

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "drill-inside";

/// Runs the command.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options = Options::parse(words, names())?;
    if options.list {
        names().for_each(|name| println!("{name}"));
        return Ok(());
    }
    if let Some(why) = crate::guest::missing() {
        return Err(format!("drill: NOT RUN: {why}"));
    }
    if !isolate::is_possible() {
        return Err("drill: no namespaces here; run it as root in a container that may make them"
            .to_owned());
    }
    let nfskit = build::given_or_release(root, "drill", options.nfskit.as_deref())?;
    let scratch = scratch::make("drill")?;
    // Made out here, where there is a network.
    let image = Image::provide(root, options.kernelvm.as_deref())?;
    let mut arguments = vec![Path::new(INSIDE), scratch.path(), &nfskit, image.scripts(), root];
    arguments.extend(words.iter().map(|word| Path::new(*word)));
    isolate::run_ourselves("drill", arguments)
}

/// Everything, in the namespaces, of which we are the first process: scratch, nfskit, the guest's
/// scripts, the checkout, and the words that [`run`] was given.
pub(crate) fn run_inside(words: &[&str]) -> Result<(), String> {
    let [scratch, nfskit, scripts, root, words @ ..] = words else {
        return Err("drill: not inside".to_owned());
    };
    let scratch = Path::new(scratch);
    isolate::end_with_caller(scratch);
    let options = Options::parse(words, names())?;
    let image = Image::built(Path::new(scripts));
    shell::attach(&image, stage::NAMESPACE)?;
    let mut outcome = Outcome::default();
    let wants_client = faults::ALL.iter().any(|scene| options.wants(scene.staged.name))
        || healthy::ALL.iter().any(|one| options.wants(one.name));
    if wants_client {
        let mut stage =
            Stage::boot(&image, scratch, Path::new(nfskit), "client", options.keep.as_deref())?;
        faults::play(&mut outcome, &mut stage, &options);
        healthy::play(&mut outcome, &mut stage, &options);
        stage.end()?;
    }
    if serving::names().chain(phases::names()).any(|name| options.wants(name)) {
        let mut stage =
            Stage::boot(&image, scratch, Path::new(nfskit), "server", options.keep.as_deref())?;
        serving::play(&mut outcome, &mut stage, &options)?;
        phases::play(&mut outcome, &mut stage, &options)?;
        stage.end()?;
    }
    outcome.tell(Path::new(root), &options)
}

fn names() -> impl Iterator<Item = &'static str> + Clone {
    let client = faults::ALL.iter().map(|scene| scene.staged.name);
    let healthy = healthy::ALL.iter().map(|one| one.name);
    client.chain(serving::names()).chain(phases::names()).chain(healthy)
}
