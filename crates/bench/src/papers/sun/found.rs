//! What was measured with and without a log, beside what the guide has.

use perf::units::Nanos;

use super::disk;

/// What the guide's disk wrote for a file of 1 MB: data, inode, indirect blocks.
pub(super) const PAPER_WITHOUT: [u64; 3] = [128, 128, 116];

pub(super) const PAPER_WITH: [u64; 3] = [128, 1, 1];

/// One of the two servers.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// Requests for a file of 1 MiB, if the disks were named.
    pub(super) disks: disk::Pair,
    /// Time for it.
    pub(super) file: Nanos,
    /// WRITEs a second, and the times of single ones.
    pub(super) curve: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) rate: f64,
    pub(super) mean: Nanos,
    pub(super) p95: Option<Nanos>,
    pub(super) is_reached: bool,
}

/// Both servers.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) without: Side,
    pub(super) with: Side,
}

#[derive(Debug)]
pub(crate) struct Found {
    /// Emulated disks, which have no inodes on them.
    pub(super) emulated: Pair,
    /// Servers of this host, if some were given.
    pub(super) real: Option<Pair>,
    /// What is to be known of their disks' numbers.
    pub(super) note: Option<String>,
}

impl Found {
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'static str, &Pair)> {
        let real = self.real.iter().map(|pair| ("this disk", pair));
        std::iter::once(("emulated", &self.emulated)).chain(real)
    }

    pub(super) fn summary(&self) -> String {
        let each = self.pairs().map(|(name, pair)| format!("{name}: {}", pair.summary()));
        each.collect::<Vec<_>>().join("\n")
    }
}

impl Pair {
    /// At rates that both keep: how many times the time with the log goes into that without.
    fn gains(&self) -> Vec<f64> {
        let both = self.without.curve.iter().zip(&self.with.curve);
        let reached = both.filter(|(without, with)| without.is_reached && with.is_reached);
        reached.map(|(a, b)| a.mean.as_secs_f64() / b.mean.as_secs_f64()).collect()
    }

    /// What the guide says of NVRAM and a log does not do here.
    pub(super) fn missed(&self) -> Vec<&'static str> {
        let mut gains = self.gains();
        gains.sort_by(f64::total_cmp);
        let middle = gains.get(gains.len() / 2);
        let (without, with) = (self.without.rate_reached(), self.with.rate_reached());
        let disks = self.with.disks.files.zip(self.without.disks.files);
        let claims = [
            ("fewer writes of the disk", disks.is_none_or(|(a, b)| a.writes < b.writes)),
            ("no more flushes of the disk", disks.is_none_or(|(a, b)| a.flushes <= b.flushes)),
            ("WRITEs no slower at the median of the rates", middle.is_none_or(|gain| *gain >= 1.0)),
            ("a rate as high is reached", with >= without && with > 0.0),
        ];
        claims.into_iter().filter(|(_, is_met)| !is_met).map(|(claim, _)| claim).collect()
    }

    pub(super) fn summary(&self) -> String {
        let share = self.with.file.as_secs_f64() / self.without.file.as_secs_f64();
        let gains = self.gains();
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(0.0, f64::max);
        let rates = match gains.is_empty() {
            true => "no rate is reached by both".to_owned(),
            false => format!("WRITEs at rates that both reach 1/{most:.2} to 1/{least:.2}"),
        };
        let disks = self.with.disks.files.zip(self.without.disks.files);
        let writes = disks.map_or_else(String::new, |(with, without)| {
            let share = |a: u64, b: u64| if b == 0 { 1.0 } else { a as f64 / b as f64 };
            let paper = share(PAPER_WITH.iter().sum(), PAPER_WITHOUT.iter().sum());
            let (writes, flushes) =
                (share(with.writes, without.writes), share(with.flushes, without.flushes));
            format!(
                "{writes:.2} of the writes (the guide: {paper:.2}) and {flushes:.2} of the \
                 flushes, "
            )
        });
        let missed: String =
            self.missed().iter().map(|claim| format!("; missed: {claim}")).collect();
        format!("with the log {writes}a file takes {share:.2} of the time, {rates}{missed}")
    }
}

impl Side {
    /// The highest rate that it reaches, or 0.
    fn rate_reached(&self) -> f64 {
        let reached = self.curve.iter().filter(|point| point.is_reached);
        reached.map(|point| point.rate).fold(0.0, f64::max)
    }
}
