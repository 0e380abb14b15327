//! Response times, counted: a thin layer over hdrhistogram that speaks [`Nanos`].
//!
//! A histogram keeps three significant digits (a value is known within 0.1 %) from a nanosecond
//! to [`Histogram::VALUE_MAX`], grows as larger values come, and never refuses a value: what is
//! longer than a day counts as a day. Recording is a handful of instructions and allocates only
//! when the range grows, so that it may stand on the path that is being measured.
//!
//! On paper it is base64 of HdrHistogram's plain V2 encoding, which the tools of that family read:
//!
//! ```text
//!  cookie  payload  offset  digits  lowest  highest  ratio   counts: zigzag LEB128,
//!    u32     u32      u32     u32     u64      u64     f64    negative n = n zeros in a row
//! ```
//!
//! We write with the library and read with our own loop, because the library's reader takes
//! counts whose sum overflows and runs of zeros whose length does, and a record is input from
//! outside.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use thiserror::Error;

use crate::stats::shows_quantile;
use crate::units::Nanos;

/// How often which span of time was seen.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    inner: hdrhistogram::Histogram<u64>,
}

/// One bucket that holds something: spans from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bucket {
    pub low: Nanos,
    pub high: Nanos,
    pub count: u64,
}

/// Why a text is not a histogram.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum DecodeError {
    #[error("not base64: {0}")]
    Base64(String),
    #[error("the header needs {HEADER_BYTES} bytes, there are {got}")]
    ShortHeader { got: usize },
    #[error("cookie {got:#010x} is not that of an uncompressed V2 histogram ({COOKIE:#010x})")]
    Cookie { got: u32 },
    #[error("the header announces {announced} bytes of counts, there are {got}")]
    Length { announced: u32, got: usize },
    #[error("the header's {field} has a value we do not support")]
    Unsupported { field: &'static str },
    #[error("the counts break off in the middle of a number")]
    Truncated,
    #[error("a count lies beyond the largest value a histogram can hold")]
    BeyondRange,
    #[error("more than {COUNT_MAX} values counted")]
    TooMany,
}

impl Histogram {
    /// Longer spans count as this one. A day: far beyond any call, and 300 KB of counts at most.
    pub const VALUE_MAX: Nanos = Nanos::from_secs(24 * 3600);

    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new(SIGNIFICANT_DIGITS)
            .expect("three digits lie within the library's range of 0 to 5");
        Self { inner }
    }

    pub fn record(&mut self, value: Nanos) {
        self.record_n(value, 1);
    }

    /// Records `value` as if seen `times`.
    pub fn record_n(&mut self, value: Nanos, times: u64) {
        if times == 0 {
            return; // the library would still move its minimum and maximum
        }
        let nanos = value.min(Self::VALUE_MAX).as_nanos();
        self.inner
            .record_n(nanos, times)
            .expect("counts up to VALUE_MAX are 300 KB, which every address space can hold");
    }

    /// Adds everything `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        self.inner
            .add(&other.inner)
            .expect("counts up to VALUE_MAX are 300 KB, which every address space can hold");
    }

    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// The shortest span, within 0.1 %; zero when empty.
    pub fn min(&self) -> Nanos {
        Nanos::from_nanos(if self.is_empty() { 0 } else { self.inner.min() })
    }

    /// The longest span, within 0.1 %; zero when empty.
    pub fn max(&self) -> Nanos {
        Nanos::from_nanos(self.inner.max()).min(Self::VALUE_MAX)
    }

    pub fn mean(&self) -> Nanos {
        Nanos::from_secs_f64(self.inner.mean() * 1e-9)
    }

    /// The span that a share `q` (0 to 1) of all values does not exceed; zero when empty.
    pub fn quantile(&self, q: f64) -> Nanos {
        Nanos::from_nanos(self.inner.value_at_quantile(q.max(0.0))).min(self.max())
    }

    /// The same, where that many values show it: see [`shows_quantile`].
    pub fn quantile_if_known(&self, q: f64) -> Option<Nanos> {
        shows_quantile(self.count(), q).then(|| self.quantile(q))
    }

    /// The buckets that hold something, shortest first: what a plot draws.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.inner.iter_recorded().map(|step| {
            let value = step.value_iterated_to();
            Bucket {
                low: Nanos::from_nanos(self.inner.lowest_equivalent(value)),
                high: Nanos::from_nanos(self.inner.highest_equivalent(value)),
                count: step.count_at_value(),
            }
        })
    }

    /// The histogram as base64 of the plain V2 encoding.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.inner, &mut bytes)
            .expect("a Vec takes every byte, and counts stay below 2^63");
        BASE64.encode(bytes)
    }

    /// Reads what [`Self::to_base64`] wrote, or any other program's plain V2 encoding.
    pub fn from_base64(text: &str) -> Result<Self, DecodeError> {
        let bytes = BASE64.decode(text.trim()).map_err(|e| DecodeError::Base64(e.to_string()))?;
        let (header, counts) = Header::parse(&bytes)?;
        header.decode(counts)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("p50", &self.quantile(0.5))
            .field("max", &self.max())
            .finish()
    }
}

impl Extend<Nanos> for Histogram {
    fn extend<T: IntoIterator<Item = Nanos>>(&mut self, values: T) {
        for value in values {
            self.record(value);
        }
    }
}

impl FromIterator<Nanos> for Histogram {
    fn from_iter<T: IntoIterator<Item = Nanos>>(values: T) -> Self {
        let mut histogram = Self::new();
        histogram.extend(values);
        histogram
    }
}

/// What the counts need to know from the header: how an index becomes a value.
struct Header {
    /// log2 of half the sub-buckets: indices per doubling of the value.
    half_bits: u32,
    /// log2 of the smallest step.
    unit_bits: u32,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let short = DecodeError::ShortHeader { got: bytes.len() };
        let (head, counts) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(short)?;
        let (words, _) = head.as_chunks::<4>();
        let word = |index: usize| u32::from_be_bytes(words[index]);
        let long = |index: usize| u64::from(word(index)) << 32 | u64::from(word(index + 1));

        if word(0) != COOKIE {
            return Err(DecodeError::Cookie { got: word(0) });
        }
        if usize::try_from(word(1)) != Ok(counts.len()) {
            return Err(DecodeError::Length { announced: word(1), got: counts.len() });
        }
        let unsupported = |field| Err(DecodeError::Unsupported { field });
        if word(2) != 0 {
            return unsupported("normalizing offset");
        }
        let digits = word(3);
        if !(1..=5).contains(&digits) {
            return unsupported("number of significant digits");
        }
        let lowest = long(4);
        if lowest == 0 || lowest > u64::MAX / 2 {
            return unsupported("lowest discernible value");
        }
        if f64::from_bits(long(8)) != 1.0 {
            return unsupported("integer to double ratio");
        }
        let half_bits = (2 * 10u64.pow(digits)).next_power_of_two().ilog2() - 1;
        let unit_bits = lowest.ilog2();
        Ok((Self { half_bits, unit_bits }, counts))
    }

    fn decode(&self, mut counts: &[u8]) -> Result<Histogram, DecodeError> {
        let mut histogram = Histogram::new();
        let mut index: u64 = 0;
        let mut total: u64 = 0;
        while !counts.is_empty() {
            let number = read_zigzag(&mut counts).ok_or(DecodeError::Truncated)?;
            let Ok(count) = u64::try_from(number) else {
                index = index.saturating_add(number.unsigned_abs());
                continue;
            };
            if count > 0 {
                total = total.saturating_add(count);
                if total > COUNT_MAX {
                    return Err(DecodeError::TooMany);
                }
                let value = self.value_at(index).ok_or(DecodeError::BeyondRange)?;
                histogram.record_n(Nanos::from_nanos(value), count);
            }
            index = index.saturating_add(1);
        }
        Ok(histogram)
    }

    /// The lowest value that index `index` stands for. The first two halves have steps of one
    /// unit; every following half doubles the step.
    fn value_at(&self, index: u64) -> Option<u64> {
        let half = 1u64 << self.half_bits;
        let (doublings, step) = match index >> self.half_bits {
            0 => (0, index),
            bucket => (u32::try_from(bucket - 1).ok()?, half + index % half),
        };
        let shift = doublings.checked_add(self.unit_bits)?;
        (shift <= step.leading_zeros()).then(|| step << shift)
    }
}

/// Takes one zigzag LEB128 number of at most nine bytes; the ninth gives all its eight bits.
#[expect(
    clippy::cast_possible_wrap,
    reason = "zigzag maps every u64 onto an i64, half of them negative"
)]
fn read_zigzag(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0u64;
    for place in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let last = place == 8 || byte & 0x80 == 0;
        let bits = if place == 8 { byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * place);
        if last {
            break;
        }
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

const SIGNIFICANT_DIGITS: u8 = 3;
const HEADER_BYTES: usize = 40;
/// HdrHistogram's mark of the uncompressed V2 encoding.
const COOKIE: u32 = 0x1c84_9303 | 0x10;
/// Most values in a histogram that we read: sums of many such still fit 64 bits.
const COUNT_MAX: u64 = 1 << 48;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_micros(values: &[u64]) -> Histogram {
        values.iter().map(|&v| Nanos::from_micros(v)).collect()
    }

    fn within_a_thousandth(got: Nanos, want: Nanos) -> bool {
        let (got, want) = (got.as_nanos() as f64, want.as_nanos() as f64);
        (got - want).abs() <= want * 1e-3
    }

    #[test]
    fn quantiles_of_the_first_thousand_microseconds() {
        let histogram: Histogram = (1..=1000).map(Nanos::from_micros).collect();
        assert_eq!(histogram.count(), 1000);
        for (q, micros) in [(0.0, 1), (0.5, 500), (0.9, 900), (0.99, 990), (1.0, 1000)] {
            let got = histogram.quantile(q);
            assert!(within_a_thousandth(got, Nanos::from_micros(micros)), "{q}: {got}");
        }
        assert!(within_a_thousandth(histogram.mean(), Nanos::from_nanos(500_500)));
    }

    #[test]
    fn what_is_longer_than_a_day_counts_as_a_day() {
        let mut histogram = of_micros(&[100]);
        histogram.record(Nanos::from_nanos(u64::MAX));
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.max(), Histogram::VALUE_MAX);
        assert_eq!(histogram.quantile(1.0), Histogram::VALUE_MAX);
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        let empty = Histogram::new();
        assert!(empty.is_empty());
        for value in [empty.min(), empty.max(), empty.mean(), empty.quantile(0.99)] {
            assert_eq!(value, Nanos::ZERO);
        }
        assert_eq!(empty.buckets().count(), 0);
        assert_eq!(Histogram::from_base64(&empty.to_base64()), Ok(empty));
    }

    #[test]
    fn quantiles_outside_the_range_are_those_of_its_ends() {
        let histogram = of_micros(&[10, 20]);
        assert_eq!(histogram.quantile(-1.0), histogram.quantile(0.0));
        assert_eq!(histogram.quantile(7.0), histogram.quantile(1.0));
        assert_eq!(histogram.quantile(f64::NAN), histogram.quantile(0.0));
    }

    #[test]
    fn a_quantile_is_known_from_so_many_values_on_that_one_lies_beyond_it() {
        let of = |count: u64| -> Histogram { (0..count).map(Nanos::from_micros).collect() };
        for (q, least) in [(0.1, 10), (0.5, 2), (0.9, 10), (0.95, 20), (0.99, 100), (0.999, 1_000)]
        {
            assert_eq!(of(least - 1).quantile_if_known(q), None, "{q}");
            assert!(of(least).quantile_if_known(q).is_some(), "{q}");
        }
        assert_eq!(of(0).quantile_if_known(1.0), None);
        assert_eq!(of(1).quantile_if_known(1.0), Some(Nanos::ZERO));
    }

    #[test]
    fn merging_is_recording_both() {
        let mut merged = of_micros(&[1, 5_000_000]);
        merged.merge(&of_micros(&[3, 90_000_000]));
        assert_eq!(merged, of_micros(&[1, 5_000_000, 3, 90_000_000]));
    }

    #[test]
    fn the_library_reads_what_we_write() {
        let histogram = of_micros(&[1, 2, 3, 1000, 1_000_000]);
        let bytes = BASE64.decode(histogram.to_base64()).unwrap();
        let read: hdrhistogram::Histogram<u64> = hdrhistogram::serialization::Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        assert_eq!(read, histogram.inner);
    }

    #[test]
    fn broken_texts_are_named() {
        let good = BASE64.decode(of_micros(&[1, 2, 3000]).to_base64()).unwrap();
        let decode = |bytes: &[u8]| Histogram::from_base64(&BASE64.encode(bytes)).unwrap_err();

        assert!(matches!(Histogram::from_base64("*"), Err(DecodeError::Base64(_))));
        assert_eq!(decode(&good[..39]), DecodeError::ShortHeader { got: 39 });
        let mut compressed = good.clone();
        compressed[3] = 0x14;
        assert!(matches!(decode(&compressed), DecodeError::Cookie { .. }));
        assert!(matches!(decode(&good[..good.len() - 1]), DecodeError::Length { .. }));

        let with_counts = |counts: &[u8]| {
            let mut bytes = good[..40].to_vec();
            bytes[7] = u8::try_from(counts.len()).unwrap();
            bytes.extend(counts);
            decode(&bytes)
        };
        assert_eq!(with_counts(&[0x80]), DecodeError::Truncated);
        // A run of zeros to the end of all indices, then a count.
        let mut far = [0xff; 9].to_vec();
        far.push(2);
        assert_eq!(with_counts(&far), DecodeError::BeyondRange);
        let mut huge = [0xff; 9];
        huge[0] = 0xfe;
        assert_eq!(with_counts(&huge), DecodeError::TooMany);
    }

    proptest! {
        #[test]
        fn encoding_keeps_every_count(
            values in proptest::collection::vec((any::<u64>(), 0u32..64, 1u64..1000), 0..50)
        ) {
            let mut histogram = Histogram::new();
            for (value, shift, times) in values {
                histogram.record_n(Nanos::from_nanos(value >> shift), times);
            }
            prop_assert_eq!(Histogram::from_base64(&histogram.to_base64()), Ok(histogram));
        }

        #[test]
        fn quantiles_rise_and_stay_between_the_ends(
            values in proptest::collection::vec(any::<u64>(), 1..50),
            a in 0.0..1.0f64,
            b in 0.0..1.0f64,
        ) {
            let histogram: Histogram = values.into_iter().map(Nanos::from_nanos).collect();
            let (low, high) = (histogram.quantile(a.min(b)), histogram.quantile(a.max(b)));
            prop_assert!(histogram.min() <= low);
            prop_assert!(low <= high);
            prop_assert!(high <= histogram.max());
        }

        #[test]
        fn reading_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut framed = BASE64.decode(of_micros(&[7]).to_base64()).unwrap()[..40].to_vec();
            framed[7] = u8::try_from(bytes.len()).unwrap();
            framed.extend(&bytes);
            if let Ok(histogram) = Histogram::from_base64(&BASE64.encode(&framed)) {
                histogram.quantile(0.5);
                histogram.mean();
            }
            let _ = Histogram::from_base64(&BASE64.encode(&bytes));
        }
    }
}
