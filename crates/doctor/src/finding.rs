//! What a rule has found, and what it is worth.

use std::fmt;

pub use trace::verdict::Certainty;

use super::rule::Rule;

perf::named! {
    /// Where a call spends its time.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Layer {
        Application => "application",
        Client => "client",
        Network => "network",
        /// They cannot be distinguished.
        NetworkOrServer => "network or server",
        Server => "server",
        Storage => "storage",
    }
}

perf::named! {
    /// How much it matters.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Severity {
        Low => "low",
        Medium => "medium",
        High => "high",
    }
}

impl Severity {
    /// One less, and no less than low.
    #[must_use]
    pub const fn weaker(self) -> Self {
        match self {
            Self::High => Self::Medium,
            Self::Medium | Self::Low => Self::Low,
        }
    }
}

/// What the remedy is predicted to give.
#[derive(Clone, Debug, PartialEq)]
pub enum Gain {
    /// The rate (of calls, or of bytes) becomes so many times what it is, at least and at most.
    Faster { of: &'static str, least: f64, most: f64, model: &'static str },
    /// And why.
    Unpredicted(String),
}

impl Gain {
    /// An interval that says something: finite, in order, and of a factor below
    /// [`Self::WIDTH_MAX`]; otherwise that there is none.
    pub fn faster(of: &'static str, bounds: (f64, f64), model: &'static str) -> Self {
        let says = bounds.0.is_finite() && bounds.1.is_finite();
        let (least, most) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
        if !says || least <= 0.0 {
            return Self::unpredicted("the counters leave every gain possible");
        }
        if most / least.max(1.0) > Self::WIDTH_MAX {
            return Self::Unpredicted(format!(
                "anything from {:.1} to {:.1} times the {of} fits these counters ({model})",
                least.max(1.0),
                most
            ));
        }
        Self::Faster { of, least: least.max(1.0), most: most.max(1.0), model }
    }

    pub fn unpredicted(why: &str) -> Self {
        Self::Unpredicted(why.to_owned())
    }

    /// Of all time, where it was of the time that calls take: `busy` of it at most has a call under
    /// way, and the rest is no shorter. Where that is not known, the unit says what it is of.
    #[must_use]
    pub fn of_all_time(self, busy: Option<f64>) -> Self {
        let Self::Faster { of, least, most, model } = self else { return self };
        let Some(busy) = busy.map(|busy| busy.clamp(0.0, 1.0)) else {
            return Self::Faster { of: while_busy(of), least, most, model };
        };
        // Amdahl's law.
        let [least, most] = [least, most].map(|times| 1.0 / (1.0 - busy + busy / times));
        Self::Faster { of, least, most, model }
    }

    /// An interval whose ends differ by more than this leaves the question open.
    pub const WIDTH_MAX: f64 = 8.0;

    /// The middle of the interval, in the sense of ratios; 1 where nothing is predicted.
    pub fn middle(&self) -> f64 {
        match self {
            Self::Faster { least, most, .. } => (least * most).sqrt(),
            Self::Unpredicted(_) => 1.0,
        }
    }
}

fn while_busy(of: &'static str) -> &'static str {
    match of {
        "work" => "work while calls are under way",
        "calls" => "calls while some are under way",
        "bytes" => "bytes while calls are under way",
        other => other,
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faster { of, least, most, model } if most - least < 0.05 => {
                write!(f, "{most:.1} times the {of}, by {model}")
            }
            Self::Faster { of, least, most, model } => {
                write!(f, "{least:.1} to {most:.1} times the {of}, by {model}")
            }
            Self::Unpredicted(why) => write!(f, "cannot be predicted from this: {why}"),
        }
    }
}

/// Whether it rests on counters, which a second sample makes rates, or on what is configured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Basis {
    Counters,
    Settings,
}

/// A rule that has something to say, before it is put in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// One sentence with its numbers.
    pub what: String,
    pub severity: Severity,
    pub certainty: Certainty,
    pub basis: Basis,
    pub evidence: Vec<String>,
    /// What speaks against it.
    pub against: Vec<String>,
    /// What to do: a command or an option, for this case.
    pub remedy: String,
    pub gain: Gain,
}

impl Found {
    /// With the severity of its rule, as sure as counters over a short time can be.
    pub fn new(rule: &Rule, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            severity: rule.severity,
            certainty: Certainty::Likely,
            basis: Basis::Counters,
            evidence: Vec::new(),
            against: Vec::new(),
            remedy: remedy.into(),
            gain: Gain::unpredicted("no model of ours has this in it"),
        }
    }

    /// Of what is configured: there is no doubt that it is.
    #[must_use]
    pub fn of_settings(mut self) -> Self {
        (self.basis, self.certainty) = (Basis::Settings, Certainty::Sure);
        self
    }

    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    #[must_use]
    pub fn certainty(mut self, certainty: Certainty) -> Self {
        self.certainty = certainty;
        self
    }

    #[must_use]
    pub fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    #[must_use]
    pub fn evidence_if(self, stands: bool, line: impl FnOnce() -> String) -> Self {
        if stands { self.evidence(line()) } else { self }
    }

    #[must_use]
    pub fn against_if(self, stands: bool, line: &str) -> Self {
        if stands { self.against(line) } else { self }
    }

    #[must_use]
    pub fn against(mut self, line: impl Into<String>) -> Self {
        self.against.push(line.into());
        self
    }

    #[must_use]
    pub fn gain(mut self, gain: Gain) -> Self {
        self.gain = gain;
        self
    }

    /// There is no prediction, and this is why.
    #[must_use]
    pub fn unpredicted(self, why: &str) -> Self {
        self.gain(Gain::unpredicted(why))
    }
}

/// Evidence that there is not, and the command that gives it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Missing {
    pub what: String,
    pub run: String,
}

impl Missing {
    pub fn new(what: impl Into<String>, run: impl Into<String>) -> Self {
        Self { what: what.into(), run: run.into() }
    }
}

/// What a rule says of a case.
pub type Judged = Result<Found, NoFinding>;

/// Why a rule has no finding.
#[derive(Clone, Debug, PartialEq)]
pub enum NoFinding {
    NotApplicable,
    /// It has looked, and all is well: with the number that shows it.
    Fine(String),
    Missing(Missing),
}

impl NoFinding {
    pub fn missing(what: impl Into<String>, run: impl Into<String>) -> Self {
        Self::Missing(Missing::new(what, run))
    }
}

/// Nothing is judged where this holds.
///
/// # Errors
/// It holds.
pub fn not_applicable_if(holds: bool) -> Result<(), NoFinding> {
    if holds { Err(NoFinding::NotApplicable) } else { Ok(()) }
}

/// All is well where this holds, by these numbers.
///
/// # Errors
/// It holds.
pub fn fine_if(holds: bool, numbers: &str) -> Result<(), NoFinding> {
    if holds { Err(NoFinding::Fine(numbers.to_owned())) } else { Ok(()) }
}

impl From<Found> for Judged {
    fn from(found: Found) -> Self {
        Ok(found)
    }
}

/// A finding in its place.
#[derive(Clone, Debug)]
pub struct Finding {
    pub rule: &'static Rule,
    /// The rule's, or that of the verdict that it passes on.
    pub layer: Layer,
    pub found: Found,
    /// What it explains.
    pub below: Vec<Self>,
}

impl PartialEq for Finding {
    fn eq(&self, other: &Self) -> bool {
        self.rule.name == other.rule.name && self.found == other.found && self.below == other.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_an_interval_that_says_something_or_none() {
        let of = |bounds| Gain::faster("calls", bounds, "a model");
        let Gain::Faster { least, most, .. } = of((2.0, 0.5)) else { panic!() };
        assert_eq!((least, most), (1.0, 2.0));
        assert!((of((2.0, 8.0)).middle() - 4.0).abs() < 1e-12);
        let Gain::Unpredicted(why) = of((1.0, 50.0)) else { panic!() };
        assert!(why.contains("1.0 to 50.0 times the calls"), "{why}");
        for bad in [(f64::NAN, 1.0), (0.0, 1.0), (1.0, f64::INFINITY)] {
            assert!(matches!(of(bad), Gain::Unpredicted(_)), "{bad:?}");
        }
        assert_eq!(Severity::High.weaker().weaker().weaker(), Severity::Low);
    }

    #[test]
    fn what_calls_do_not_take_they_cannot_save() {
        let of = |busy| Gain::faster("work", (4.0, 30.0), "a model").of_all_time(busy).to_string();
        assert_eq!(of(Some(0.3)), "1.3 to 1.4 times the work, by a model");
        assert_eq!(of(Some(1.0)), "4.0 to 30.0 times the work, by a model");
        assert_eq!(of(Some(7.5)), of(Some(1.0)), "several at a time");
        let while_busy = "4.0 to 30.0 times the work while calls are under way, by a model";
        assert_eq!(of(None), while_busy);
    }
}
