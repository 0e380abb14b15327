//! What happened over time, in a number of columns that does not grow: when the last is full, two
//! become one.

use std::collections::BTreeMap;

use super::operation::Operation;
use super::spread::Spread;
use super::transaction::Transaction;

/// Columns there are at most.
pub const COLUMNS_MAX: usize = 1024;
/// The width of a column at first.
const WIDTH_NS: u64 = 1_000_000;
/// Rows of the heat map: two for each doubling from 1 us on.
pub const ROWS: usize = 54;
/// Transactions that are recorded as points.
pub const POINTS_MAX: usize = 1 << 13;
/// Points of one operation that are recorded besides, and operations that have such.
const OWN_POINTS_MAX: usize = 1 << 11;
const OPERATIONS_MAX: usize = 32;

/// One column of time.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Calls that got their reply.
    pub calls: u64,
    /// Read or written.
    pub bytes: u64,
    pub latency_ns_sum: u64,
    /// Most calls outstanding at once.
    pub outstanding_max: u32,
    /// Calls by their latency.
    pub rows: [u32; ROWS],
}

impl Default for Column {
    fn default() -> Self {
        Self { calls: 0, bytes: 0, latency_ns_sum: 0, outstanding_max: 0, rows: [0; ROWS] }
    }
}

/// A transaction as a point of a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When its reply came.
    pub at_ns: u64,
    /// None where it is not known.
    pub latency_ns: Option<u64>,
    pub bytes: u32,
    /// Read and written until then.
    pub cumulative_bytes: u64,
}

/// Every so many transactions, one.
#[derive(Debug)]
struct Points {
    points: Vec<Point>,
    most: usize,
    /// One transaction in so many is a point.
    stride: u64,
    turn: u64,
}

#[derive(Debug)]
pub struct Series {
    begin_ns: u64,
    width_ns: u64,
    columns: Vec<Column>,
    points: Points,
    /// Those of the operations that came first: what is rare has a plot, too.
    own: BTreeMap<Operation, Points>,
    cumulative_bytes: u64,
    pub latency: Spread,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            begin_ns: 0,
            width_ns: WIDTH_NS,
            columns: Vec::new(),
            points: Points::new(POINTS_MAX),
            own: BTreeMap::new(),
            cumulative_bytes: 0,
            latency: Spread::default(),
        }
    }
}

impl Points {
    const fn new(most: usize) -> Self {
        Self { points: Vec::new(), most, stride: 1, turn: 0 }
    }

    fn add(&mut self, point: Point) {
        self.turn += 1;
        if self.turn < self.stride {
            return;
        }
        self.turn = 0;
        if self.points.len() >= self.most {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
        self.points.push(point);
    }
}

impl Series {
    pub(super) fn record(&mut self, transaction: &Transaction, outstanding: u32) {
        let Transaction { reply_ns: at_ns, bytes, operation, .. } = *transaction;
        let latency_ns = transaction.latency().map(|latency| latency.as_nanos());
        self.cumulative_bytes += u64::from(bytes);
        let column = self.column(at_ns);
        column.calls += 1;
        column.bytes += u64::from(bytes);
        column.outstanding_max = column.outstanding_max.max(outstanding);
        if let Some(ns) = latency_ns {
            column.latency_ns_sum = column.latency_ns_sum.saturating_add(ns);
            column.rows[row(ns)] += 1;
            self.latency.record(ns);
        }
        let point = Point { at_ns, latency_ns, bytes, cumulative_bytes: self.cumulative_bytes };
        self.points.add(point);
        if self.own.len() < OPERATIONS_MAX || self.own.contains_key(&operation) {
            self.own.entry(operation).or_insert_with(|| Points::new(OWN_POINTS_MAX)).add(point);
        }
    }

    fn column(&mut self, at_ns: u64) -> &mut Column {
        if self.columns.is_empty() {
            self.begin_ns = at_ns;
        }
        let mut index = at_ns.saturating_sub(self.begin_ns) / self.width_ns;
        while index >= COLUMNS_MAX as u64 {
            self.halve();
            index = at_ns.saturating_sub(self.begin_ns) / self.width_ns;
        }
        let index = usize::try_from(index).unwrap_or(COLUMNS_MAX - 1);
        if self.columns.len() <= index {
            self.columns.resize(index + 1, Column::default());
        }
        &mut self.columns[index]
    }

    fn halve(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let pairs = self.columns.chunks(2).map(|pair| {
            let mut joined = pair[0];
            if let Some(second) = pair.get(1) {
                joined.calls += second.calls;
                joined.bytes += second.bytes;
                joined.latency_ns_sum = joined.latency_ns_sum.saturating_add(second.latency_ns_sum);
                joined.outstanding_max = joined.outstanding_max.max(second.outstanding_max);
                joined.rows.iter_mut().zip(second.rows).for_each(|(own, other)| *own += other);
            }
            joined
        });
        self.columns = pairs.collect();
    }

    /// When the first column begins, and how wide each is.
    pub const fn scale_ns(&self) -> (u64, u64) {
        (self.begin_ns, self.width_ns)
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Every so many transactions, one.
    pub fn points(&self) -> &[Point] {
        &self.points.points
    }

    /// The same of one operation; none of those that came when others had taken all places.
    pub fn points_of(&self, operation: Operation) -> &[Point] {
        self.own.get(&operation).map_or(&[], |own| &own.points)
    }

    /// Every so many transactions that read or wrote, one: of the operation that moved the most.
    pub fn moving(&self) -> impl Iterator<Item = &Point> {
        let moved = |points: &Points| {
            points.points.iter().map(|point| u64::from(point.bytes)).sum::<u64>() * points.stride
        };
        let most = self.own.values().max_by_key(|points| moved(points));
        most.into_iter().flat_map(|most| &most.points).filter(|point| point.bytes > 0)
    }

    pub const fn cumulative_bytes(&self) -> u64 {
        self.cumulative_bytes
    }
}

/// The row of a latency.
pub(super) fn row(latency_ns: u64) -> usize {
    let us = (latency_ns / 1000).max(1);
    let octave = us.ilog2();
    // The upper half of a doubling begins at its square root of two.
    let half = usize::from(us.saturating_mul(5) >= (7_u64 << octave));
    (octave as usize * 2 + half).min(ROWS - 1)
}

/// The latency in microseconds at which a row begins.
pub fn row_begins_us(row: usize) -> f64 {
    let octave = i32::try_from(row / 2).unwrap_or(0);
    2_f64.powi(octave) * if row % 2 == 1 { 1.4 } else { 1.0 }
}
