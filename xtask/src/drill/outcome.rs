//! What was staged, what doctor found, what was predicted and what measured; and whether that is
//! good enough.

use std::path::Path;

use serde_json::{Value, json};

use super::answer::Answer;
use super::options::Options;
use super::scene::Staged;

use crate::host::about;

/// How many causes may be wrong.
const WRONG_CAUSES_MAX: usize = 2;
/// Median of the differences between predicted and measured.
const ERROR_MEDIAN_MAX: f64 = 0.15;
/// Where the tables are recorded, between its two marks.
const DOCUMENT: &str = "docs/doctor.md";
const MARKS: [&str; 2] = ["<!-- drill: begin -->", "<!-- drill: end -->"];

#[derive(Debug, Default)]
pub(super) struct Outcome {
    faults: Vec<Fault>,
    healthy: Vec<Healthy>,
    /// What could not be played, and why.
    failed: Vec<String>,
}

/// A fault that was staged.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) staged: Staged,
    pub(super) answer: Option<Answer>,
    pub(super) gain: Option<Gain>,
}

/// A remedy that was applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gain {
    pub(super) remedy: &'static str,
    /// How many times as fast, at least and at most; none if doctor did not predict it.
    pub(super) predicted: Option<(f64, f64)>,
    pub(super) measured: f64,
}

#[derive(Debug)]
struct Healthy {
    name: &'static str,
    /// What was found of high severity.
    high: Vec<String>,
}

impl Fault {
    fn is_right(&self) -> (bool, bool) {
        let Some(answer) = &self.answer else { return (false, false) };
        (answer.layer == self.staged.layer, self.staged.causes.contains(&answer.cause.as_str()))
    }

    fn row(&self) -> String {
        let Staged { name, about, layer, causes } = self.staged;
        let (has_layer, has_cause) = self.is_right();
        let verdict = self.answer.as_ref().map_or_else(
            || "nothing".to_owned(),
            |answer| format!("{}: {}", answer.layer, answer.cause),
        );
        let right = match (has_layer, has_cause) {
            (true, true) => "yes",
            (true, false) => "layer",
            (false, _) => "NO",
        };
        let cause = causes.first().copied().unwrap_or_default();
        format!("| {name} | {about} | {layer}: {cause} | {verdict} | {right} |\n")
    }

    fn json(&self) -> Value {
        let answer = self.answer.as_ref().map(
            |answer| json!({"layer": answer.layer, "cause": answer.cause, "what": answer.what}),
        );
        let (right_layer, right_cause) = self.is_right();
        let Staged { name, about, layer, causes } = self.staged;
        json!({
            "name": name, "staged": about, "layer": layer, "causes": causes,
            "found": answer, "right_layer": right_layer, "right_cause": right_cause,
            "gain": self.gain.map(|gain| gain.json()),
        })
    }
}

impl Gain {
    /// The middle of what was predicted, in the sense of ratios.
    fn middle(&self) -> Option<f64> {
        self.predicted.map(|(least, most)| (least * most).sqrt())
    }

    fn error(&self) -> Option<f64> {
        self.middle().map(|middle| middle / self.measured - 1.0)
    }

    fn row(&self, name: &str) -> String {
        let Self { remedy, measured, .. } = self;
        let predicted = self.predicted.zip(self.middle()).map_or_else(
            || "not".to_owned(),
            |((least, most), middle)| format!("{middle:.2} ({least:.2} to {most:.2})"),
        );
        let error =
            self.error().map_or_else(String::new, |error| format!("{:+.0} %", error * 100.0));
        format!("| {name} | {remedy} | {predicted} | {measured:.2} | {error} |\n")
    }

    fn json(&self) -> Value {
        json!({
            "remedy": self.remedy, "predicted": self.predicted.map(<[f64; 2]>::from),
            "predicted_middle": self.middle(), "measured": self.measured, "error": self.error(),
        })
    }
}

impl Outcome {
    /// Notes a fault, and shows it.
    pub(super) fn fault(&mut self, fault: Fault) {
        print!("{}", fault.row());
        if let Some(answer) = &fault.answer {
            println!("    {}", answer.what);
        }
        if let Some(gain) = &fault.gain {
            print!("    {}", gain.row(fault.staged.name));
        }
        self.faults.push(fault);
    }

    /// Notes a run on which all was well.
    pub(super) fn healthy(&mut self, name: &'static str, high: Vec<String>) {
        println!("| {name} | healthy | {} |", if high.is_empty() { "well" } else { "NO" });
        high.iter().for_each(|what| println!("    {what}"));
        self.healthy.push(Healthy { name, high });
    }

    pub(super) fn failed(&mut self, name: &str, why: &str) {
        println!("| {name} | FAILED: {why} |");
        self.failed.push(format!("{name}: {why}"));
    }

    /// Prints the tables, writes what was requested, and judges.
    pub(super) fn tell(&self, root: &Path, options: &Options) -> Result<(), String> {
        let tables = self.tables();
        println!("\n{tables}");
        if let Some(path) = &options.json {
            let written = std::fs::write(path, format!("{:#}\n", self.json()));
            written.map_err(about(path))?;
        }
        self.verdict()?;
        if options.record { record(root, &tables) } else { Ok(()) }
    }

    fn tables(&self) -> String {
        let faults: String = self.faults.iter().map(Fault::row).collect();
        let gains = self.faults.iter().filter_map(|fault| Some(fault.gain?.row(fault.staged.name)));
        let gains: String = gains.collect();
        let (layers, causes) = self.right();
        let mut text = format!(
            "| fault | what was staged | layer: cause | doctor's first finding | right |\n\
             |---|---|---|---|---|\n{faults}\n\
             {} faults: the layer is right in {layers}, the cause in {causes}. {} healthy runs: \
             something of high severity in {}.\n",
            self.faults.len(),
            self.healthy.len(),
            self.ill().len()
        );
        if let Some(error) = self.error_median() {
            text.push_str(&format!(
                "\n| fault | remedy | times as fast, predicted | measured | error |\n\
                 |---|---|---|---:|---:|\n{gains}\nMedian error: {:.0} %.\n",
                error * 100.0
            ));
        }
        text
    }

    fn json(&self) -> Value {
        let (layers, causes) = self.right();
        json!({
            "schema": "nfskit.drill/1",
            "faults": self.faults.iter().map(Fault::json).collect::<Vec<_>>(),
            "healthy": self.healthy.iter().map(|one| json!({"name": one.name, "high": one.high}))
                .collect::<Vec<_>>(),
            "failed": self.failed,
            "right_layers": layers, "right_causes": causes,
            "error_median": self.error_median(),
        })
    }

    fn right(&self) -> (usize, usize) {
        let right: Vec<(bool, bool)> = self.faults.iter().map(Fault::is_right).collect();
        let count = |of: fn(&&(bool, bool)) -> bool| right.iter().filter(of).count();
        (count(|one| one.0), count(|one| one.1))
    }

    fn ill(&self) -> Vec<&'static str> {
        self.healthy.iter().filter(|one| !one.high.is_empty()).map(|one| one.name).collect()
    }

    fn error_median(&self) -> Option<f64> {
        let errors = self.faults.iter().filter_map(|fault| fault.gain?.error());
        let mut errors: Vec<f64> = errors.map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        let (low, high) = (errors.len().checked_sub(1)? / 2, errors.len() / 2);
        Some(f64::midpoint(errors[low], errors[high]))
    }

    fn verdict(&self) -> Result<(), String> {
        let (layers, causes) = self.right();
        let all = self.faults.len();
        let mut wrong = self.failed.clone();
        if layers < all {
            wrong.push(format!("the layer is wrong in {}", all - layers));
        }
        if causes + WRONG_CAUSES_MAX < all {
            wrong.push(format!("the cause is wrong in {}", all - causes));
        }
        if !self.ill().is_empty() {
            wrong.push(format!("high severity where all is well: {}", self.ill().join(", ")));
        }
        if let Some(error) = self.error_median().filter(|error| *error > ERROR_MEDIAN_MAX) {
            wrong.push(format!("predictions are off by {:.0} %", error * 100.0));
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(format!("drill: {}", wrong.join("; "))),
        }
    }
}

/// Puts the tables into the document.
fn record(root: &Path, tables: &str) -> Result<(), String> {
    let path = root.join(DOCUMENT);
    let text = std::fs::read_to_string(&path).map_err(|cause| format!("{DOCUMENT}: {cause}"))?;
    let text = crate::full::between(&text, MARKS, tables)
        .ok_or_else(|| format!("{DOCUMENT} lacks the lines {MARKS:?}"))?;
    std::fs::write(&path, text).map_err(|cause| format!("{DOCUMENT}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drill::scene::staged;

    fn fault(layer: &str, cause: &str, gain: Option<Gain>) -> Fault {
        let answer = Answer { layer: layer.into(), cause: cause.into(), ..Answer::default() };
        let staged = staged("name", "about", "network", &["loss", "retransmissions"]);
        Fault { staged, answer: Some(answer), gain }
    }

    fn of(faults: Vec<Fault>) -> Outcome {
        Outcome { faults, ..Outcome::default() }
    }

    #[test]
    fn two_causes_may_be_wrong_and_no_layer() {
        let right = || fault("network", "retransmissions", None);
        let wrong_cause = || fault("network", "latency", None);
        assert_eq!(of(vec![right(), wrong_cause(), wrong_cause()]).verdict(), Ok(()));
        let causes = of(vec![wrong_cause(), wrong_cause(), wrong_cause()]).verdict();
        assert!(causes.unwrap_err().contains("the cause is wrong in 3"));
        let layer = of(vec![right(), fault("server", "loss", None)]).verdict();
        assert!(layer.unwrap_err().contains("the layer is wrong in 1"));
        let silent = Fault { answer: None, ..right() };
        assert!(of(vec![silent]).verdict().is_err());
    }

    #[test]
    fn a_prediction_is_compared_by_its_middle() {
        let gain = |least, most, measured| {
            let predicted = Some((least, most));
            Some(Gain { remedy: "less", predicted, measured })
        };
        let with = |gains: [Option<Gain>; 2]| {
            of(gains.map(|gain| fault("network", "loss", gain)).into_iter().collect())
        };
        let good = with([gain(1.0, 4.0, 2.0), gain(1.0, 1.0, 1.25)]);
        assert!((good.error_median().unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(good.verdict(), Ok(()));
        let bad = with([gain(1.0, 4.0, 4.0), gain(2.0, 2.0, 1.0)]);
        assert!(bad.verdict().unwrap_err().contains("off by"));
        assert!(good.tables().contains("| name | less | 2.00 (1.00 to 4.00) | 2.00 | +0 % |"));
    }

    #[test]
    fn what_is_well_must_not_be_found_ill_and_what_fails_fails() {
        let mut outcome = Outcome::default();
        outcome.healthy("read", Vec::new());
        assert_eq!(outcome.verdict(), Ok(()));
        outcome.healthy("write", vec!["slow".to_owned()]);
        assert!(outcome.verdict().unwrap_err().contains("all is well: write"));
        let mut outcome = Outcome::default();
        outcome.failed("loss", "no tc");
        assert!(outcome.verdict().is_err());
    }
}
