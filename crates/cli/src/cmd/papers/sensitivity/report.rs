//! The report with the figures.

use super::Outcome;
use crate::args::papers::Sensitivity;

pub(super) fn html(_outcome: &Outcome, _args: &Sensitivity) -> String {
    String::new()
}
