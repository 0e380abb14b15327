//! Servers and directories to write in: looked at before, each with a directory of the run's own,
//! which is removed however the run ends.

use std::path::PathBuf;

use client::files::Files;
use client::mount::{self, Mounted};
use client::url::Target;
use harness::descriptors;
use harness::exit::Failure;
use harness::local;
use harness::scratch::{Held, REMOVE_LIMIT};
use harness::signals::Interrupts;
use harness::target::Reached;
use load::file_system::{self, FileSystem};
use load::scratch::Scratch;
use load::tasks::{At, Server, Writer};
use net::clock::Clock;
use perf::record::Durability;

use super::plan::{Case, Plan};
use crate::tasks::args::Tasks;

/// A target as reports describe it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) is_server: bool,
    pub(super) file_system: String,
    pub(super) mount_options: Option<String>,
    /// What a file survives that was written as the run does it; `None` where that is not known.
    pub(super) durability: Option<Durability>,
    pub(super) survives: &'static str,
}

enum Made<'a> {
    Dir(PathBuf),
    Server(Box<Remote<'a>>),
}

struct Remote<'a> {
    target: &'a Target,
    /// The server without an emulated link.
    plain: Reached,
    held: Held,
}

/// See the module's head.
pub(super) struct Targets<'a> {
    clock: &'a Clock,
    args: &'a Tasks,
    plan: &'a Plan,
    places: Vec<Place>,
    made: Vec<Made<'a>>,
}

impl<'a> Targets<'a> {
    /// Servers first, then directories, in the order in which they were named.
    pub(super) async fn look(
        clock: &'a Clock,
        args: &'a Tasks,
        plan: &'a Plan,
        interrupts: &mut Interrupts,
    ) -> Result<Self, Failure> {
        descriptors::raise_limit();
        let mut targets = Self { clock, args, plan, places: Vec::new(), made: Vec::new() };
        let looked = interrupts.or(targets.look_at_dirs()).await;
        looked?;
        match targets.make(interrupts).await {
            Ok(()) => Ok(targets),
            Err(failure) => targets.release(Err(failure)).await,
        }
    }

    /// Directories, before anything is made; and the link, before it is used.
    async fn look_at_dirs(&mut self) -> Result<(), Failure> {
        self.args.client.calibrate(self.clock).await?;
        for target in &self.args.target {
            self.places.push(Place {
                name: target.to_string(),
                is_server: true,
                file_system: format!(
                    "NFS v{} over {}, our client",
                    target.version.number(),
                    target.protocol.name().to_uppercase()
                ),
                mount_options: None,
                // Every file is flushed when it is closed, with what the protocol promises of that.
                durability: Some(Durability::Stable),
                survives: "a loss of power, as the protocol promises of a close",
            });
        }
        for dir in &self.args.dir {
            let file_system = local::directory(dir, "--dir")?;
            let free = file_system::free_bytes(dir).map_err(Failure::from)?;
            self.is_enough(self.places.len(), &dir.display().to_string(), free)?;
            self.places.push(directory(dir.display().to_string(), file_system, self.args.sync));
        }
        Ok(())
    }

    fn is_enough(&self, target: usize, name: &str, free: u64) -> Result<(), Failure> {
        let advice = "free space there, a smaller --size, or fewer --tasks";
        local::room(name, self.plan.room_bytes(target), free, advice)
    }

    async fn make(&mut self, interrupts: &mut Interrupts) -> Result<(), Failure> {
        for target in &self.args.target {
            let options = self.args.client.beside_link(target);
            let plain = Reached::new(self.clock, None, target, options);
            let held = Held::make(&plain, interrupts).await?;
            self.made.push(Made::Server(Box::new(Remote { target, plain, held })));
        }
        let tag = local::tag(self.clock);
        for (number, dir) in self.args.dir.iter().enumerate() {
            // The same directory may have been named twice.
            self.made.push(Made::Dir(local::scratch(dir, &format!("{tag}-{number}"))?));
        }
        Ok(())
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Connects every client of every server; a directory has the system for its client.
    pub(super) async fn seats(&self) -> Result<Seats<'_>, Failure> {
        let mut seats = Seats { plan: self.plan, at: Vec::new() };
        for (number, made) in self.made.iter().enumerate() {
            let mut clients = Vec::new();
            for _ in 0..self.plan.clients {
                clients.push(match made {
                    Made::Dir(dir) => At::Dir(dir.clone()),
                    Made::Server(remote) => {
                        let scratch = &remote.held.scratch;
                        At::Server(self.connect(number, remote.target, scratch).await?)
                    }
                });
            }
            seats.at.push(clients);
        }
        Ok(seats)
    }

    async fn connect(
        &self,
        number: usize,
        target: &Target,
        scratch: &Scratch,
    ) -> Result<Server, Failure> {
        let options = self.args.client.over_link(target);
        let Mounted { session, .. } = mount::mount(self.clock, target, &options).await?;
        let files = Files::new(self.clock, session, self.args.client.files());
        let who = options.credential;
        let free = files.statfs(&who).await?.abytes;
        self.is_enough(number, &target.to_string(), free)?;
        Ok(Server { files, who, dir: scratch.dir() })
    }

    /// Removes the run's directories, and gives what came of it.
    pub(super) async fn release<T>(self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        let mut outcome = outcome;
        for made in self.made {
            outcome = match made {
                Made::Server(remote) => {
                    remote.held.clear(&remote.plain, REMOVE_LIMIT, outcome).await
                }
                Made::Dir(dir) => removed(&dir, outcome),
            };
        }
        outcome
    }
}

fn removed<T>(dir: &std::path::Path, outcome: Result<T, Failure>) -> Result<T, Failure> {
    let Err(cause) = std::fs::remove_dir_all(dir) else { return outcome };
    Err(local::left(dir, &cause.to_string(), outcome))
}

fn directory(name: String, file_system: FileSystem, is_synced: bool) -> Place {
    let is_nfs = file_system.is_nfs();
    let (durability, survives) = match file_system.flushed {
        Some(Durability::Stable) if is_nfs => {
            (Some(Durability::Stable), "a loss of power, as the protocol promises of a close")
        }
        Some(Durability::Stable) if is_synced => (Some(Durability::Stable), "a loss of power"),
        Some(Durability::Memory) => (Some(Durability::Memory), "nothing: it lies in memory"),
        Some(_) => (
            Some(Durability::PageCache),
            "the end of this program, but no loss of power: nothing is flushed (--sync)",
        ),
        None => (None, "something that is not known from here"),
    };
    let FileSystem { kind: file_system, mount_options, .. } = file_system;
    Place { name, is_server: false, file_system, mount_options, durability, survives }
}

/// Where the tasks write: for each target its clients.
pub(super) struct Seats<'a> {
    plan: &'a Plan,
    at: Vec<Vec<At>>,
}

impl Seats<'_> {
    pub(super) fn of(&self, case: &Case) -> Vec<Writer> {
        let seats = self.plan.seats(case).into_iter();
        let writer =
            |(target, client)| Writer { target, client, at: self.at[target][client].clone() };
        seats.map(writer).collect()
    }

    /// Lets the clients go.
    pub(super) async fn shut_down(&self) {
        for at in self.at.iter().flatten() {
            if let At::Server(server) = at {
                server.files.shut_down().await;
            }
        }
    }
}
