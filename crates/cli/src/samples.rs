//! Where samples come from: this host's files, or pages of metrics.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use counters::mountstats::Mount;
use futures_util::future::join_all;
use harness::exit::Failure;
use harness::output;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use net::http;
use perf::units::{Instant, Nanos};
use watch::ours::{Ours, Page};
use watch::place::Place;
use watch::sample::{Rates, Sample};
use watch::table::Table;
use watch::tables;

/// How long a page may take.
const PAGE_LIMIT: Nanos = Nanos::from_secs(5);
/// Bytes of a page, at most: one with 30,000 series has a tenth.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// What came between two samples, or since the beginning.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) time: String,
    /// Of the kernel.
    pub(crate) rates: Option<Rates>,
    /// Of our own programs, by their addresses.
    pub(crate) ours: Vec<(String, Ours)>,
    /// What was passed over.
    pub(crate) problems: Vec<String>,
}

impl Taken {
    pub(crate) fn of_rates(time: String, rates: Rates) -> Self {
        Self { time, rates: Some(rates), ours: Vec::new(), problems: Vec::new() }
    }

    /// No mount, no server, no page.
    pub(crate) fn is_nothing(&self) -> bool {
        let of_kernel = self.rates.as_ref().is_some_and(|rates| {
            rates.server.is_some()
                || rates.mounts.as_ref().is_some_and(|all| !all.mounts.is_empty())
                || rates.mounts.is_none() && rates.client.is_some()
        });
        !of_kernel && self.ours.is_empty()
    }

    /// Says what was passed over where it was not in the sample `before`; with `-v` each time.
    pub(crate) fn complain(&self, verbosity: Verbosity, before: &[String]) {
        let is_new = |one: &&String| verbosity == Verbosity::Verbose || !before.contains(one);
        let new = self.problems.iter().filter(is_new);
        new.for_each(|one| output::say(format_args!("passed over {one}")));
    }

    /// As tables, for `top`.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let of_kernel =
            self.rates.iter().flat_map(|of| tables::of_kernel(of, tables::Depth::Operations));
        let ours = self.ours.iter().flat_map(|(address, ours)| tables_of(ours, address));
        of_kernel.chain(ours).collect()
    }
}

pub(crate) fn tables_of(ours: &Ours, address: &str) -> Vec<Table> {
    match ours {
        Ours::Mount(mount) => tables::our_mount(mount, address),
        Ours::Server(server) => tables::our_server(server, address),
    }
}

/// Takes samples and remembers the last of each kind.
#[derive(Debug)]
pub(crate) struct Source {
    clock: Clock,
    place: Place,
    mounts: Vec<PathBuf>,
    before: Option<(Sample, Instant)>,
    pages: Vec<(SocketAddr, Option<(Page, Instant)>)>,
    /// When the first sample was taken, and how many there were.
    begun: Option<Instant>,
    taken: u32,
}

impl Source {
    /// Of this host or a copy of its files, or of these pages if there are any.
    pub(crate) fn new(
        clock: &Clock,
        pages: &[SocketAddr],
        from: Option<&PathBuf>,
        mounts: &[PathBuf],
    ) -> Self {
        Self {
            clock: clock.clone(),
            place: from.map_or(Place::Here, |path| Place::Saved(path.clone())),
            mounts: mounts.to_vec(),
            before: None,
            pages: pages.iter().map(|address| (*address, None)).collect(),
            begun: None,
            taken: 0,
        }
    }

    /// One more sample.
    ///
    /// # Errors
    /// None of the pages is there, and there was none before.
    pub(crate) async fn take(&mut self) -> Result<Taken, Failure> {
        self.begun.get_or_insert_with(|| self.clock.now());
        self.taken += 1;
        let time = load::environment::rfc3339(&self.clock);
        if !self.pages.is_empty() {
            return self.take_pages(time).await;
        }
        let (mut sample, ignored) = self.place.read();
        let now = self.clock.now();
        keep(&mut sample, &self.mounts);
        let before = self.before.as_ref();
        let before = before.map(|(sample, at)| (sample, now.since(*at).as_secs_f64()));
        let rates = sample.rates(before);
        self.before = Some((sample, now));
        let problems = ignored.iter().map(ToString::to_string).collect();
        Ok(Taken { problems, ..Taken::of_rates(time, rates) })
    }

    async fn take_pages(&mut self, time: String) -> Result<Taken, Failure> {
        let mut taken = Taken { time, rates: None, ours: Vec::new(), problems: Vec::new() };
        // At once: one that does not answer holds up no other.
        let found = join_all(self.pages.iter().map(|(at, _)| page(&self.clock, *at))).await;
        for ((address, before), found) in self.pages.iter_mut().zip(found) {
            match found.and_then(|page| since(page, before, &self.clock)) {
                Ok(ours) => taken.ours.push((address.to_string(), ours)),
                Err(why) => taken.problems.push(format!("http://{address}/metrics: {why}")),
            }
        }
        let has_been = self.pages.iter().any(|(_, before)| before.is_some());
        match taken.problems.first() {
            Some(why) if !has_been => Err(Failure::environment(
                why,
                "start the program with --metrics ADDRESS:PORT, and give the same here",
            )),
            _ => Ok(taken),
        }
    }

    /// Until the next sample is due, counted from the first, so that reading costs no time.
    pub(crate) fn until_next(&self, interval: Nanos) -> Nanos {
        let now = self.clock.now();
        let begun = self.begun.unwrap_or(now);
        let due = begun + Nanos::from_nanos(interval.as_nanos() * u64::from(self.taken));
        // Who was stopped for long does not make up for it.
        if due > now { due.since(now) } else { interval }
    }
}

/// What came since the page before, of which this takes the place.
fn since(page: Page, before: &mut Option<(Page, Instant)>, clock: &Clock) -> Result<Ours, String> {
    let now = clock.now();
    let older = before.as_ref().map(|(page, at)| (page, now.since(*at).as_secs_f64()));
    let rates = page.rates(older, clock.since_1970().as_secs_f64());
    let rates = rates.ok_or("metrics of another program than nfskit serve or mount")?;
    *before = Some((page, now));
    Ok(rates)
}

/// A page of metrics.
pub(crate) async fn page(clock: &Clock, address: SocketAddr) -> Result<Page, String> {
    let fetched = http::fetch(clock, address, "/metrics", PAGE_LIMIT, PAGE_BYTES_MAX).await;
    let bytes = fetched.map_err(|cause| cause.to_string())?;
    let mut page = Page::read(&bytes).map_err(|problem| problem.to_string())?;
    // Most servers do not tell files apart, and answer that there is no such page.
    if let Ok(bytes) = http::fetch(clock, address, "/files", PAGE_LIMIT, PAGE_BYTES_MAX).await
        && let Ok(files) = Page::read(&bytes)
    {
        page.join(files);
    }
    Ok(page)
}

/// Leaves only these mounts, if any are named.
pub(crate) fn keep(sample: &mut Sample, points: &[PathBuf]) {
    if points.is_empty() {
        return;
    }
    // By components: a shell completes a directory's name with a slash.
    let is_wanted = |mount: &Mount| points.iter().any(|point| point == Path::new(&mount.point));
    if let Some(mounts) = &mut sample.mounts {
        mounts.retain(is_wanted);
    }
    (sample.client, sample.server) = (None, None);
}
