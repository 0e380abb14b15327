//! What doctor has found, out of its JSON.

use serde_json::Value;

/// Its first finding.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) layer: String,
    /// The rule, or the phase of a mount that failed.
    pub(super) cause: String,
    pub(super) what: String,
    /// How many times faster, at least and at most.
    pub(super) gain: Option<(f64, f64)>,
}

/// All that was found of high severity.
pub(super) fn high(json: &Value) -> Vec<String> {
    let is_high = |finding: &&Value| finding["severity"] == "high";
    findings(json).filter(is_high).map(|finding| text(&finding["what"])).collect()
}

/// The first finding that the verdict rests on: one of low severity is none.
pub(super) fn first(json: &Value) -> Option<Answer> {
    let first = findings(json).find(|finding| finding["severity"] != "low")?;
    let gain = &first["gain"];
    Some(Answer {
        layer: text(&first["layer"]),
        cause: text(&first["rule"]),
        what: text(&first["what"]),
        gain: gain["least"].as_f64().zip(gain["most"].as_f64()),
    })
}

/// Of a URL: what its phases come to.
pub(super) fn of_phases(json: &Value) -> Option<Answer> {
    let first = json.get("first").filter(|first| first.is_object())?;
    let [layer, cause, what] = ["layer", "cause", "what"].map(|name| text(&first[name]));
    Some(Answer { layer, cause, what, gain: None })
}

/// Of all reports, in their order; not what others explain.
fn findings(json: &Value) -> impl Iterator<Item = &Value> {
    let reports = json["reports"].as_array().into_iter().flatten();
    reports.flat_map(|report| report["findings"].as_array().into_iter().flatten())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_finding_is_the_first_that_is_not_low() {
        let finding = |rule: &str, severity: &str| {
            json!({"rule": rule, "layer": "client", "severity": severity, "what": rule,
                   "gain": {"least": 1.5, "most": 2.0}})
        };
        let json = json!({"reports": [{"findings": [finding("a", "low")]},
                                      {"findings": [finding("b", "high"), finding("c", "high")]}]});
        let answer = first(&json).unwrap();
        assert_eq!((answer.cause.as_str(), answer.gain), ("b", Some((1.5, 2.0))));
        assert_eq!(high(&json), ["b", "c"]);
        assert_eq!(first(&json!({"reports": []})), None);
    }

    #[test]
    fn phases_have_their_own_first_finding() {
        let first = json!({"layer": "network", "cause": "connect", "what": "a firewall"});
        assert_eq!(of_phases(&json!({"first": first})).unwrap().layer, "network");
        assert_eq!(of_phases(&json!({"first": null})), None);
    }
}
