//! Why a model cannot be built or solved: always which parameter, what it was, what it may be.

use thiserror::Error;

#[derive(Clone, Debug, Error, PartialEq)]
pub enum ModelError {
    #[error("{what} is {got}: it has to be a finite number above 0")]
    NotPositive { what: &'static str, got: f64 },
    #[error("{what} is {got}: it has to be a finite number, 0 or more")]
    Negative { what: &'static str, got: f64 },
    #[error("{what} is {got}: a share lies between 0 and 1")]
    NotShare { what: &'static str, got: f64 },
    #[error("loss is {loss}: nothing arrives then, it has to be below 1")]
    NothingArrives { loss: f64 },
    #[error("loss is {loss}: of {fragments} fragments, all never arrive, and no call is answered")]
    NoneWhole { loss: f64, fragments: u64 },
    #[error("{what} is {got}: it has to be a whole number")]
    NotWhole { what: &'static str, got: f64 },
    #[error("{what} is {got}: at least {min} and at most {max}")]
    OutOfRange { what: &'static str, got: u64, min: u64, max: u64 },
    #[error("{what}: {got} values where {need} are needed")]
    Count { what: &'static str, got: usize, need: usize },
}

pub(crate) fn positive(what: &'static str, got: f64) -> Result<f64, ModelError> {
    if got.is_finite() && got > 0.0 { Ok(got) } else { Err(ModelError::NotPositive { what, got }) }
}

pub(crate) fn not_negative(what: &'static str, got: f64) -> Result<f64, ModelError> {
    if got.is_finite() && got >= 0.0 { Ok(got) } else { Err(ModelError::Negative { what, got }) }
}

pub(crate) fn share(what: &'static str, got: f64) -> Result<f64, ModelError> {
    if (0.0..=1.0).contains(&got) { Ok(got) } else { Err(ModelError::NotShare { what, got }) }
}

pub(crate) fn within(what: &'static str, got: u64, min: u64, max: u64) -> Result<u64, ModelError> {
    if (min..=max).contains(&got) {
        Ok(got)
    } else {
        Err(ModelError::OutOfRange { what, got, min, max })
    }
}
