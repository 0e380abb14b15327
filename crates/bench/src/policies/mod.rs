//! `nfskit bench policies`: the five write-behind policies side by side.

pub mod args;
mod findings;
mod measured;
mod record;
mod report;
mod text;

use client::mount;
use client::session::Session;
use client::write_behind::PolicyName;
use harness::emulated;
use harness::exit::Failure;
use harness::output::Bars;
use harness::scratch;
use harness::served::Embedded;
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::policies::{self, Run};
use load::scratch::Scratch;
use net::clock::Clock;
use net::shape::Shape;
use net::shape::profile::Profile;
use perf::record::Run as Record;
use perf::units::Nanos;

use self::measured::{CALL_BYTES, Measured, Outcome, Scene, Speed};
use crate::policies::args::Policies;
use crate::workload::{self, Conditions, Outputs, Workload};

/// More than the longest file, so that only the policies hold the writer back.
const DIRTY_BYTES_MAX: u64 = 1 << 30;

/// What the servers in memory hold: two files at most, and what is being removed.
const STORE_BYTES_MAX: u64 = 1 << 30;

/// Of the paper's network: "one Gbps, full duplex"; the latency is that of the goal.
fn usual_link() -> Profile {
    Profile::of("50us/1g", Nanos::from_micros(50), 1_000_000_000)
}

/// A server as much slower as makes the difference plain: with the paper's 26 to 38 MB/s the
/// writer, ten times as fast today, would not notice which one it is.
const SLOW_SHARE: u64 = 5;

impl Workload for Policies {
    /// Most bytes of a WRITE.
    type Plan = u32;
    type Measured = Outcome;

    fn plan(&self) -> Result<u32, Failure> {
        let wsize = u32::try_from(self.wsize).ok().filter(|wsize| (4096..=1 << 20).contains(wsize));
        wsize.ok_or_else(|| Failure::usage("--wsize is not between 4K and 1M", "--wsize 8K"))
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs { html: &self.html, ..Outputs::json(&self.json) }
    }

    /// One thread is the writer; the others send, and handle replies.
    fn is_on_all_processors(&self) -> bool {
        true
    }

    async fn run(
        &self,
        &wsize: &u32,
        Conditions { clock, mut interrupts, verbosity }: Conditions,
    ) -> Result<workload::Outcome<Outcome>, Failure> {
        let begun = clock.now();
        let bars = Bars::new(verbosity);
        let course = Course { clock: &clock, args: self, wsize, bars };
        let usual = || if self.target.is_some() { Profile::none() } else { usual_link() };
        let link = self.link.clone().unwrap_or_else(usual);
        emulated::calibrate(&clock, &link).await?;
        let mut measured = Vec::new();
        let ended = match &self.target {
            Some(target) => {
                let options = |link: Shape| target::options(target, self.reply_limit, link);
                let plain = Reached::new(&clock, None, target, options(Shape::default()));
                scratch::in_scratch(&plain, &mut interrupts, async |scratch: &Scratch| {
                    let session =
                        mount::mount(&clock, target, &options(link.clone().into())).await?.session;
                    let lane = Lane { speed: Speed::Fast, session, scratch };
                    course.run(&[lane], &mut measured).await
                })
                .await
            }
            None => interrupts.or(embedded(course, link.clone(), &mut measured)).await,
        };
        measured.retain(|one| !one.runs.is_empty());
        let took = clock.now().since(begun);
        let url = self.target.as_ref().map(ToString::to_string);
        let is_empty = measured.is_empty();
        let outcome = Outcome { link, url, wsize, took, measured };
        Ok(workload::Outcome::until((!is_empty).then_some(outcome), ended))
    }

    fn table(&self, _: &u32, outcome: &Outcome, _: Verbosity) -> String {
        let report = self.html.iter().map(|html| format!("\nreport: {}\n", html.display()));
        text::table(outcome) + &report.collect::<String>()
    }

    fn record(&self, _: &u32, outcome: &Outcome) -> Vec<Record> {
        vec![record::record(outcome, self)]
    }

    fn figure(&self, _: &u32, outcome: &Outcome) -> String {
        report::html(outcome)
    }
}

/// A server, and where to write there.
struct Lane<'a> {
    speed: Speed,
    session: Session,
    scratch: &'a Scratch,
}

/// Against servers of our own. Their links are at their end, so that what our client sends are
/// real messages to a real socket.
async fn embedded(
    course: Course<'_>,
    link: Profile,
    measured: &mut Vec<Measured>,
) -> Result<(), Failure> {
    let slow_link = link.clone().slowed(SLOW_SHARE);
    let mut reached = Vec::new();
    for (speed, link) in [(Speed::Fast, link), (Speed::Slow, slow_link)] {
        let server = Embedded::in_memory(link, STORE_BYTES_MAX)?;
        let (target, options) = server.reach(course.args.reply_limit, Shape::default());
        let session = mount::mount(course.clock, &target, &options).await?.session;
        let scratch = Scratch::create(&session, &Scratch::name_for("policies")).await?;
        reached.push((server, speed, session, scratch));
    }
    let lanes: Vec<Lane<'_>> = reached
        .iter()
        .map(|(_, speed, session, scratch)| Lane {
            speed: *speed,
            session: session.clone(),
            scratch,
        })
        .collect();
    course.run(&lanes, measured).await
}

/// The order of runs: every repetition goes over all files and servers, and each of these over all
/// policies, so that a disturbance meets all alike.
struct Course<'a> {
    clock: &'a Clock,
    args: &'a Policies,
    wsize: u32,
    bars: Bars,
}

impl Course<'_> {
    async fn run(
        mut self,
        lanes: &[Lane<'_>],
        measured: &mut Vec<Measured>,
    ) -> Result<(), Failure> {
        let source = load::seqwrite::pattern(CALL_BYTES as usize);
        for scene in Scene::ALL {
            for lane in lanes {
                let is_wanted = lane.speed == Speed::Fast || scene.is_for_both_servers();
                for policy in PolicyName::ALL.into_iter().filter(|_| is_wanted) {
                    let file_bytes = scene.file_bytes(self.args.quick);
                    let (speed, runs) = (lane.speed, Vec::new());
                    measured.push(Measured { policy, scene, speed, file_bytes, runs });
                }
            }
        }
        for lane in lanes {
            // Wakes the caches and the connection.
            self.one(lane, PolicyName::Adaptive, Scene::Short, &source).await?;
        }
        let total = measured.len() * self.args.repeats as usize;
        let mut done = 0;
        for _ in 0..self.args.repeats {
            for one in measured.iter_mut() {
                self.bars.show("five policies", done as f64 / total as f64);
                let lane = lanes.iter().find(|lane| lane.speed == one.speed);
                if let Some(lane) = lane {
                    one.runs.push(self.one(lane, one.policy, one.scene, &source).await?);
                }
                done += 1;
            }
        }
        self.bars.clear();
        Ok(())
    }

    async fn one(
        &self,
        lane: &Lane<'_>,
        policy: PolicyName,
        scene: Scene,
        source: &[u8],
    ) -> Result<Run, Failure> {
        let workload = policies::Workload {
            policy,
            file_bytes: scene.file_bytes(self.args.quick),
            call_bytes: CALL_BYTES,
            wsize: self.wsize.min(lane.session.sizes().write_bytes_max),
            dirty_bytes_max: DIRTY_BYTES_MAX,
            timing: true,
        };
        let file = lane.scratch.file(&lane.session, "f").await?;
        let run = policies::run(self.clock, &lane.session, file, &workload, source).await?;
        lane.scratch.remove_file(&lane.session, "f").await?;
        Ok(run)
    }
}
