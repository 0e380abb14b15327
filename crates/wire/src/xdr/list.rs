//! XDR linked lists (RFC 4506 section 4.19), the form in which directories and exports travel.

use std::ops::Deref;

use super::{Decode, DecodeError, Encode, Reader};

/// `TRUE element TRUE element ... FALSE`. Its length is bounded by the bytes that are present.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(elements: Vec<T>) -> Self {
        Self(elements)
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self(elements.into_iter().collect())
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'l, T> IntoIterator for &'l List<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Encode> Encode for List<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        for element in self {
            true.encode(out);
            element.encode(out);
        }
        false.encode(out);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for List<T> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut elements = Vec::new();
        while bool::decode(r)? {
            elements.push(T::decode(r)?);
        }
        Ok(Self(elements))
    }
}
