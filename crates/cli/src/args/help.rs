//! How `--help` shows the options: in groups, what every command has at the end, and below the
//! examples what a TIME, a SIZE and the like are. One table for all commands, so that an option has
//! its place wherever it occurs.

use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches};
use client::url;
use perf::words;

use super::Args;

const TARGET: &str = "Target";
const WORKLOAD: &str = "Workload";
const CLIENT: &str = "Client";
const NETWORK: &str = "Network";
const LIMITS: &str = "Limits";
const OUTPUT: &str = "Output";
const GENERAL: &str = "General";

/// The heading of a command's options that have no other.
const OF_COMMAND: [(&str, &str); 14] = [
    ("bench", WORKLOAD),
    ("cache", "Cache"),
    ("crash-test", WORKLOAD),
    ("doctor", "Evidence"),
    ("link", "Relay"),
    ("log", "Recovery"),
    ("model", "Parameters"),
    ("mount", "Mount"),
    ("papers", "Measurement"),
    ("probe", "Measurement"),
    ("serve", "Exports"),
    ("stat", "Samples"),
    ("study", "Measurement"),
    ("top", "Samples"),
];

/// Headings of options that several commands have.
const SHARED: [(&str, &[&str]); 5] = [
    (TARGET, &["target", "dir", "to", "compare", "first", "second", "store", "link", "rpcbind"]),
    (CLIENT, &["write_policy", "dirty_max", "wsize", "wire", "reply_limit"]),
    (
        OUTPUT,
        &["csv", "html", "json", "log_format", "markdown", "metrics", "out", "parquet", "pcap"],
    ),
    (LIMITS, &["grace", "idle", "stall"]),
    (GENERAL, &["quiet", "verbose"]),
];

/// Headings of the options of one command.
const OWN: [(&str, &str, &[&str]); 21] = [
    ("clean", "Cache", &["to"]),
    ("serve", NETWORK, &["listen", "udp", "versions", "portmap", "register", "link"]),
    ("serve", LIMITS, &["threads", "connections", "connections_per_host", "calls", "in_flight"]),
    ("serve", LIMITS, &["mem_size"]),
    (
        "serve",
        "Durability",
        &[
            "commit_mode",
            "metadata_sync",
            "write_log",
            "write_log_size",
            "log_failure",
            "log_replies",
            "state",
        ],
    ),
    (
        "serve",
        "Proxy",
        &[
            "origin",
            "read_ahead",
            "write_back",
            "write_back_size",
            "cache",
            "cache_size",
            "offline_reads",
        ],
    ),
    ("serve", OUTPUT, &["metrics_files", "slow_log"]),
    ("curve", TARGET, &["write_log"]),
    ("link", NETWORK, &["listen", "listen_mount", "to", "udp", "insecure"]),
    ("link", LIMITS, &["connections", "held", "threads"]),
    ("link", OUTPUT, &["stats"]),
    (
        "mount",
        "Caches",
        &["kernel_cache", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "noac"],
    ),
    ("mount", "Caches", &["nocto", "sync", "write_policy", "dirty_max", "kernel_dirty_max"]),
    ("mount", "Caches", &["cache", "cache_size", "cache_files"]),
    ("mount", NETWORK, &["hard", "soft", "timeo", "retrans", "nconnect", "rsize", "wsize", "link"]),
    ("trace", "Capture", &["interface", "no_promiscuous", "time"]),
    ("trace", "Selection", &["client", "server", "operation", "file", "from", "until"]),
    ("trace", OUTPUT, &["explain", "mix"]),
    ("stat", "Samples", &["metrics", "from", "mount"]),
    ("top", "Samples", &["metrics", "from"]),
    ("stream", TARGET, &["server", "listen"]),
];

/// All commands, as help shows them.
pub(crate) fn command() -> Command {
    shown(Args::command(), None)
}

/// The command line, read.
///
/// # Errors
/// What clap says of it; also what `--help` prints.
pub(crate) fn parse() -> Result<Args, clap::Error> {
    let mut matches = command().try_get_matches()?;
    Args::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command()))
}

/// A command below the one that decides its headings.
fn shown(command: Command, group: Option<&'static str>) -> Command {
    let name = command.get_name().to_owned();
    let group = group.or_else(|| find(&OF_COMMAND, &name));
    let values = values(&command);
    let after = command.get_after_help().map(ToString::to_string);
    let command = command
        .mut_subcommands(|below| shown(below, group))
        .mut_args(|arg| match arg.is_positional() {
            true => arg,
            false => {
                let heading = heading(&name, arg.get_id().as_str(), group);
                let takes_values = arg.get_action().takes_values();
                // `--seed -1`: the option itself refuses it, and says what it takes.
                arg.help_heading(heading).allow_negative_numbers(takes_values)
            }
        })
        .disable_help_flag(true)
        .arg(general("help", 'h', ArgAction::Help).help("Prints help; -h a summary"));
    let command = match command.get_version().is_some() {
        true => command
            .disable_version_flag(true)
            .arg(general("version", 'V', ArgAction::Version).help("Prints the version")),
        false => command,
    };
    match (after, values.is_empty()) {
        (_, true) => command,
        (Some(after), false) => command.after_help(format!("{after}\n\n{values}")),
        (None, false) => command.after_help(values),
    }
}

fn general(name: &'static str, short: char, action: ArgAction) -> Arg {
    Arg::new(name).long(name).short(short).action(action).help_heading(GENERAL).display_order(1000)
}

fn heading(command: &str, option: &str, group: Option<&'static str>) -> &'static str {
    let own = OWN.iter().filter(|(of, ..)| *of == command);
    let own = own.map(|(_, heading, options)| (*heading, *options));
    let mut listed = own.chain(SHARED);
    let found = listed.find(|(_, options)| options.contains(&option));
    found.map(|(heading, _)| heading).or(group).unwrap_or(GENERAL)
}

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
}

/// What the words for values mean that occur among a command's options.
fn values(command: &Command) -> String {
    let names = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let names: Vec<&str> = names
        .flat_map(|arg| arg.get_value_names().unwrap_or_default())
        .flat_map(|name| name.split(['|', ',']))
        .collect();
    let profile = "PROFILE is none, a name such as lan-1g or wan-80ms, LATENCY/RATE or FILE.toml, \
                   with changes behind it: lan-1g,loss=1%,o=50us.";
    let forms = [
        ("PROFILE", profile.to_owned()),
        ("TIME", format!("TIME is {}.", words::TIME_FORM)),
        ("SIZE", format!("SIZE is {}.", words::SIZE_FORM)),
        ("RATE", "RATE is bytes a second, as a SIZE, or such as 12.5MB/s or 100Mbit/s.".to_owned()),
        ("URL", format!("URL is {}.", url::FORM)),
    ];
    let forms = forms.into_iter().filter(|(name, _)| names.contains(name));
    forms.map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}
