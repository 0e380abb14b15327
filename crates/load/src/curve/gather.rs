//! How the processes of one measurement meet.
//!
//! The driver of the load points runs in every process and decides the same in each, because it
//! decides by merged outcomes alone: [`Gather::merge`] gives everyone the same one. What a process
//! knows by itself goes through [`Gather::broadcast`], in which the first decides for all.

use thiserror::Error;

use super::share::Share;
use crate::mix::Outcome;

/// Another process is gone, or does not speak as we do.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("the other generators: {0}")]
pub struct GatherError(pub String);

/// See the module's head. Every process makes the same calls in the same order.
pub trait Gather {
    /// Which part of the load this process makes.
    fn share(&self) -> Share;

    /// Waits until all processes have come here.
    ///
    /// # Errors
    /// [`GatherError`].
    fn barrier(&mut self) -> impl Future<Output = Result<(), GatherError>>;

    /// The outcomes of all processes as one, the same for each.
    ///
    /// # Errors
    /// [`GatherError`].
    fn merge(&mut self, own: Outcome) -> impl Future<Output = Result<Outcome, GatherError>>;

    /// The sums of what all processes bring, number by number; as many from each.
    ///
    /// # Errors
    /// [`GatherError`].
    fn sum(&mut self, own: Vec<f64>) -> impl Future<Output = Result<Vec<f64>, GatherError>>;

    /// What the first process says.
    ///
    /// # Errors
    /// [`GatherError`].
    fn broadcast(&mut self, own: Vec<f64>) -> impl Future<Output = Result<Vec<f64>, GatherError>>;
}

/// One process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Gather for Alone {
    fn share(&self) -> Share {
        Share::WHOLE
    }

    async fn barrier(&mut self) -> Result<(), GatherError> {
        Ok(())
    }

    async fn merge(&mut self, own: Outcome) -> Result<Outcome, GatherError> {
        Ok(own)
    }

    async fn sum(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        Ok(own)
    }

    async fn broadcast(&mut self, own: Vec<f64>) -> Result<Vec<f64>, GatherError> {
        Ok(own)
    }
}
