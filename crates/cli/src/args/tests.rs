//! What holds for the options of all commands: found by a walk of clap's tree.

use clap::error::ErrorKind;
use clap::{Arg, Command};

/// Every command, with its words, and each of its options.
fn each(mut visit: impl FnMut(&[String], &Command, &Arg)) {
    fn walk(
        command: &Command,
        words: &[String],
        visit: &mut impl FnMut(&[String], &Command, &Arg),
    ) {
        command.get_arguments().for_each(|arg| visit(words, command, arg));
        for below in command.get_subcommands() {
            let words = [words, &[below.get_name().to_owned()]].concat();
            walk(below, &words, visit);
        }
    }
    walk(&super::help::command(), &["nfskit".to_owned()], &mut visit);
}

/// The word for what an option takes, such as TIME, of each option that takes one.
fn values(mut visit: impl FnMut(&[String], &Command, &Arg, &str)) {
    each(|words, command, arg| {
        let names = arg.get_value_names().unwrap_or_default();
        if let (Some(name), true) = (names.first(), arg.get_action().takes_values()) {
            visit(words, command, arg, name);
        }
    });
}

/// What clap says of `--option=value`, if it is about this value.
fn refusal(command: &Command, arg: &Arg, value: &str) -> Option<String> {
    let option = format!("--{}={value}", arg.get_long()?);
    let error = command.clone().try_get_matches_from([command.get_name(), &option]).err()?;
    let is_about = [ErrorKind::ValueValidation, ErrorKind::InvalidValue].contains(&error.kind());
    is_about.then(|| error.to_string())
}

#[test]
fn the_arguments_are_consistent() {
    super::help::command().debug_assert();
}

/// What options with a range of their own refuse.
const OUT_OF_RANGE: [(&str, &[&str]); 2] =
    [("kernel-dirty-max", &["1MB", "64K", "4096"]), ("timeo", &["0.1ms"])];

#[test]
fn every_time_and_every_size_is_written_in_the_same_ways() {
    let mut found = [0, 0];
    values(|words, command, arg, name| {
        let kinds = name.split(['|', ',']).collect::<Vec<_>>();
        let (good, form) = match (kinds.contains(&"TIME"), kinds.contains(&"SIZE")) {
            (true, _) => (["0.1ms", "1.5s", "1m", "90"], "ns, us, ms, s, m"),
            (_, true) => (["1.5M", "1MB", "64K", "4096"], "K, M, G"),
            _ => return,
        };
        found[usize::from(kinds.contains(&"SIZE"))] += 1;
        let option = arg.get_long().unwrap();
        for value in good {
            let is_out_of_range = OUT_OF_RANGE
                .iter()
                .any(|(name, values)| *name == option && values.contains(&value));
            let refused = refusal(command, arg, value).filter(|_| !is_out_of_range);
            assert_eq!(refused, None, "{words:?} --{option} {value}");
        }
        for wrong in ["1.5X", "-3", "soon", "", "1.5.5"] {
            let refused = refusal(command, arg, wrong);
            let refused = refused.unwrap_or_else(|| panic!("{words:?} --{option} takes {wrong:?}"));
            for part in [&format!("--{option}"), wrong, form] {
                assert!(refused.contains(part), "{words:?}: no {part:?} in {refused}");
            }
        }
    });
    assert!(found[0] > 40 && found[1] > 40, "{found:?} times and sizes");
}

#[test]
fn a_negative_number_is_refused_by_the_option_that_it_stands_behind() {
    let lines = [
        "model simulate x.toml --seed -1",
        "model cycle --round-trip -5",
        "model whatif x.json L=1ms --messages -1",
        "bench null --target server:/x --rate -2.5",
    ];
    for line in lines {
        let words = ["nfskit"].into_iter().chain(line.split(' '));
        let refused = super::help::command().try_get_matches_from(words).unwrap_err().to_string();
        let words: Vec<&str> = line.split(' ').rev().take(2).collect();
        let (value, option) = (words[0], words[1]);
        assert!(refused.contains(&format!("'{value}' for '{option}")), "{refused}");
    }
}

/// A library's words name no range, and not what was given.
#[test]
fn what_is_no_number_is_refused_in_our_words() {
    const FOREIGN: [&str; 4] =
        ["invalid digit", "cannot parse", "number too large", "invalid float"];
    let mut found = 0;
    values(|words, command, arg, _| {
        for wrong in ["x", "", "99999999999999999999", "-1"] {
            let Some(refused) = refusal(command, arg, wrong) else { continue };
            let is_foreign = FOREIGN.iter().any(|part| refused.contains(part));
            assert!(!is_foreign, "{words:?}: {refused}");
            found += 1;
        }
    });
    assert!(found > 200, "{found} refusals");
}

#[test]
fn outputs_mean_the_same_in_every_command() {
    let mut found = 0;
    values(|words, _, arg, name| {
        let (takes, is_named): (_, &[&str]) = match arg.get_long() {
            Some("json") => ("-|FILE", &["record"]),
            Some("html") => ("-|FILE", &["report"]),
            Some("csv") => ("-|FILE", &["as CSV"]),
            Some("parquet") => ("-|FILE", &["a row for every"]),
            Some("out") => ("DIR", &["report.html, run.json and calls.csv"]),
            _ => return,
        };
        found += 1;
        assert_eq!(name, takes, "{words:?} --{}", arg.get_id());
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let parts = is_named.iter().chain((takes == "-|FILE").then_some(&"standard output"));
        parts.for_each(|part| assert!(help.contains(part), "{words:?}: no {part:?} in {help:?}"));
    });
    assert!(found > 40, "{found} outputs");
}

/// Options that have another name now, with the old one.
const RENAMED: [(&[&str], &str, &str); 4] = [
    (&["bench", "policies"], "html", "out"),
    (&["papers", "sensitivity"], "html", "out"),
    (&["bench", "seqwrite"], "csv", "latencies"),
    (&["bench", "rtt"], "csv", "latencies"),
];

#[test]
fn old_names_of_options_still_work_and_are_not_shown() {
    for (words, new, old) in RENAMED {
        let mut command = super::help::command();
        command.build();
        let below = words
            .iter()
            .fold(&mut command, |command, word| command.find_subcommand_mut(word).unwrap());
        assert!(!below.render_long_help().to_string().contains(&format!("--{old} ")), "{words:?}");
        let arg = below.get_arguments().find(|arg| arg.get_long() == Some(new)).unwrap();
        assert_eq!(arg.get_all_aliases(), Some(vec![old]), "{words:?}");
    }
}

#[test]
fn a_target_is_a_url_or_a_host_and_an_export() {
    let mut found = 0;
    values(|words, command, arg, name| {
        if name != "URL" || arg.get_long().is_none() {
            return;
        }
        found += 1;
        for value in ["nfs://server/export", "server:/export", "[fe80::1]:/export", "127.0.0.1:/"] {
            assert_eq!(refusal(command, arg, value), None, "{words:?} {value}");
        }
        let refused = refusal(command, arg, "server").unwrap_or_default();
        assert!(refused.contains("or HOST:/EXPORT"), "{words:?}: {refused}");
    });
    assert!(found > 9, "{found} targets");
}

#[test]
fn options_stand_in_groups_and_those_of_every_command_at_the_end() {
    each(|words, command, arg| {
        if command.is_hide_set() || arg.is_hide_set() {
            return;
        }
        let heading = arg.get_help_heading();
        let is_grouped = arg.is_positional() || heading.is_some();
        assert!(is_grouped, "{words:?}: {} has no group", arg.get_id());
        let is_of_all = ["quiet", "verbose", "help", "version"].contains(&arg.get_id().as_str());
        assert_eq!(heading == Some("General"), is_of_all, "{words:?}: {}", arg.get_id());
    });
    for words in [&["study"][..], &["bench", "curve"], &["serve"], &["mount"], &["trace"]] {
        let mut command = super::help::command();
        command.build();
        let mut below = &mut command;
        for word in words {
            below = below.find_subcommand_mut(word).unwrap();
        }
        let help = below.render_long_help().to_string();
        let headings: Vec<&str> = help
            .lines()
            .filter(|line| !line.starts_with(' ') && line.ends_with(':') && line.len() < 20)
            .filter(|line| !["Examples:", "Arguments:"].contains(line))
            .collect();
        assert!(
            headings.len() > 1 && headings.last() == Some(&"General:"),
            "{words:?} {headings:?}"
        );
        let (_, general) = help.split_once("General:").unwrap();
        let at = |option: &str| general.find(option).unwrap_or_else(|| panic!("no {option}"));
        assert!(at("--quiet") < at("--verbose") && at("--verbose") < at("--help"), "{general}");
        assert!(general.contains("TIME is a number and ns, us, ms"), "{words:?}: {general}");
    }
}
