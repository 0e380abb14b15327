//! What a server's processor spends on calls.

use std::collections::BTreeMap;

use net::processor::Processor;
use perf::units::Nanos;
use server::{ServiceCost, Work};
use wire::Procedure;
use wire::nfs3;

/// The costs of calls. Those of procedures that are not named are the common ones.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Costs {
    /// Of a call with its reply.
    pub per_call: Nanos,
    /// Of a byte of call or reply, in picoseconds.
    pub per_byte_ps: u64,
    /// By the name of the procedure of version 3, instead of `per_call`.
    pub of: BTreeMap<&'static str, Nanos>,
}

impl Costs {
    /// The same for every call.
    pub fn per_call(span: Nanos) -> Self {
        Self { per_call: span, ..Self::default() }
    }

    /// Another cost for one procedure.
    #[must_use]
    pub fn with(mut self, procedure: nfs3::Procedure, span: Nanos) -> Self {
        self.of.insert(procedure.name(), span);
        self
    }

    fn of_call(&self, procedure: Procedure) -> Nanos {
        match procedure {
            Procedure::Nfs3(procedure) => {
                self.of.get(procedure.name()).copied().unwrap_or(self.per_call)
            }
            _ => self.per_call,
        }
    }

    fn of_bytes(&self, bytes: usize) -> Nanos {
        let ps = u128::from(self.per_byte_ps) * bytes as u128;
        Nanos::from_nanos(u64::try_from(ps / 1_000).unwrap_or(u64::MAX))
    }

    fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Costs, spent on a processor.
#[derive(Debug)]
pub(crate) struct Spent {
    pub(crate) costs: Costs,
    pub(crate) processor: Processor,
}

impl ServiceCost for Spent {
    fn call(&self, procedure: Procedure, bytes: usize) -> Option<Work<'_>> {
        if self.costs.are_none() {
            return None;
        }
        let span = self.costs.of_call(procedure) + self.costs.of_bytes(bytes);
        (span > Nanos::ZERO).then(|| Box::pin(self.processor.spend(span)) as Work<'_>)
    }

    fn reply(&self, _procedure: Procedure, bytes: usize) -> Option<Work<'_>> {
        if self.costs.per_byte_ps == 0 {
            return None;
        }
        // The call has had its turn: its reply does not queue again behind all that came since.
        let span = self.costs.of_bytes(bytes);
        (span > Nanos::ZERO).then(|| Box::pin(self.processor.spend_ahead(span)) as Work<'_>)
    }
}
