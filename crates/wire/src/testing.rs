//! Random values of every message type, for property tests.

use crate::xdr::List;

/// Where random values draw from: bytes that a property test makes and shrinks. Beyond their end
/// there are zeros, so that every value can be made and short inputs make simple values.
pub(crate) struct Entropy<'a> {
    bytes: &'a [u8],
}

impl<'a> Entropy<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.array::<1>()[0] & 1 == 1
    }

    pub(crate) fn choose<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.array::<1>()[0]) % choices.len()]
    }

    /// Mostly short opaques of every remainder modulo four.
    pub(crate) fn bytes(&mut self, len_max: usize) -> &'a [u8] {
        let len = usize::from(self.array::<1>()[0]) % 72;
        self.take(len.min(len_max))
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(len.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
}

/// A random value.
pub(crate) trait Sample<'a>: Sized {
    fn sample(entropy: &mut Entropy<'a>) -> Self;
}

impl Sample<'_> for () {
    fn sample(_entropy: &mut Entropy<'_>) -> Self {}
}

impl Sample<'_> for u32 {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.u32()
    }
}

impl Sample<'_> for u64 {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.u64()
    }
}

impl Sample<'_> for bool {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.flag()
    }
}

impl<const N: usize> Sample<'_> for [u8; N] {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.array()
    }
}

impl<'a, T: Sample<'a>> Sample<'a> for Option<T> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        entropy.flag().then(|| T::sample(entropy))
    }
}

impl<'a, T: Sample<'a>> Sample<'a> for Vec<T> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        let count = entropy.array::<1>()[0] % 4;
        (0..count).map(|_| T::sample(entropy)).collect()
    }
}

impl<'a, T: Sample<'a>> Sample<'a> for List<T> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        Self(Vec::sample(entropy))
    }
}

impl<'a, T: Sample<'a>, F: Sample<'a>> Sample<'a> for Result<T, F> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        match entropy.flag() {
            true => Ok(T::sample(entropy)),
            false => Err(F::sample(entropy)),
        }
    }
}
