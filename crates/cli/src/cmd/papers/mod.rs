//! `nfskit papers`: what the papers measured, done again: paper, model and measurement side by
//! side.

pub(crate) mod loggp;
pub(crate) mod predict;
pub(crate) mod sensitivity;
pub(crate) mod whatif;
mod writes;
