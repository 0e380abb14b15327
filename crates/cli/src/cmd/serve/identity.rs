//! As whom callers act, in the words of the banner.

use harness::exports::{RuleSpec, Spec};
use server::{NOBODY, Squash};

/// Anonymous users that are named; where there are more, each export has its own.
const NAMED_MAX: usize = 3;

/// Of a server that can act as others: by the rules of all its exports.
pub(super) fn of_callers(specs: &[Spec]) -> String {
    let squashes = |squash| rules(specs).any(|rule| rule.squash == squash);
    if !squashes(Squash::Root) && !squashes(Squash::None) {
        return format!("every caller acts as {}", anonymous(specs, Squash::All));
    }
    let mut text = "callers act with their own uid, gid and groups".to_owned();
    match (squashes(Squash::None), squashes(Squash::Root)) {
        (true, true) => text += "; where not squashed, root is root",
        (true, false) => text += ", and root is root",
        (false, _) => text += &format!(", and root as {}", anonymous(specs, Squash::Root)),
    }
    if squashes(Squash::All) {
        text += &format!("; where all_squash, as {}", anonymous(specs, Squash::All));
    }
    text
}

/// An export whose anonymous user is root: squashing gives there what it is to take.
pub(super) fn anonymous_root(specs: &[Spec]) -> Option<String> {
    let is_root = |spec: &&Spec| {
        let rule = &spec.rule;
        rule.squash != Squash::None && rule.anonymous_uid == 0
    };
    let name = &specs.iter().find(is_root)?.name;
    Some(format!("whoever is squashed acts as root in {name} (anonuid=0)"))
}

/// As whom those act whom such rules squash.
fn anonymous(specs: &[Spec], squash: Squash) -> String {
    let of_rule = |rule: &RuleSpec| (rule.anonymous_uid, rule.anonymous_gid);
    let mut users: Vec<(u32, u32)> =
        rules(specs).filter(|rule| rule.squash == squash).map(of_rule).collect();
    users.sort_unstable();
    users.dedup();
    let named = |(uid, gid): &(u32, u32)| match (*uid, *gid) {
        (NOBODY, NOBODY) => "nobody".to_owned(),
        (uid, gid) => format!("uid {uid}, gid {gid}"),
    };
    match users.len() {
        0..=NAMED_MAX => users.iter().map(named).collect::<Vec<_>>().join(" or "),
        _ => "the anonymous user of the export".to_owned(),
    }
}

fn rules(specs: &[Spec]) -> impl Iterator<Item = &RuleSpec> {
    specs.iter().map(|spec| &spec.rule)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn spec(squash: Squash, anonymous: u32) -> Spec {
        let (anonymous_uid, anonymous_gid) = (anonymous, anonymous);
        let rule = RuleSpec { squash, anonymous_uid, anonymous_gid, ..RuleSpec::default() };
        Spec { path: PathBuf::from("/x"), name: "/x".to_owned(), id: None, rule }
    }

    #[test]
    fn callers_act_as_the_rules_of_the_exports_have_it() {
        let own = "callers act with their own uid, gid and groups";
        let (none, root) = (spec(Squash::None, NOBODY), spec(Squash::Root, NOBODY));
        let (all, all_as_one) = (spec(Squash::All, NOBODY), spec(Squash::All, 1000));
        for (specs, text) in [
            (vec![root.clone()], format!("{own}, and root as nobody")),
            (vec![spec(Squash::Root, 0)], format!("{own}, and root as uid 0, gid 0")),
            (vec![none.clone()], format!("{own}, and root is root")),
            (vec![none, root.clone()], format!("{own}; where not squashed, root is root")),
            (vec![all.clone()], "every caller acts as nobody".to_owned()),
            (
                vec![all_as_one.clone(), all],
                "every caller acts as uid 1000, gid 1000 or nobody".to_owned(),
            ),
            (
                vec![all_as_one, root],
                format!("{own}, and root as nobody; where all_squash, as uid 1000, gid 1000"),
            ),
        ] {
            assert_eq!(of_callers(&specs), text);
        }
        let many: Vec<Spec> = (1000..1004).map(|uid| spec(Squash::All, uid)).collect();
        assert_eq!(of_callers(&many), "every caller acts as the anonymous user of the export");
    }

    #[test]
    fn an_anonymous_root_is_warned_of() {
        assert_eq!(anonymous_root(&[spec(Squash::None, 0), spec(Squash::Root, NOBODY)]), None);
        for squash in [Squash::All, Squash::Root] {
            assert!(anonymous_root(&[spec(squash, 0)]).unwrap().contains("acts as root in /x"));
        }
    }
}
