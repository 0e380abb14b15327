//! What packages take from the arguments: manual pages and completions.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::roff::{Roff, bold, roman};
use harness::exit::Failure;
use harness::output;

use crate::args::{Completions, Man, help};

/// How every command ends; `harness::exit` makes it so.
const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "It is done; what runs until it is stopped has ended in order."),
    ("1", "A check or a goal failed, or data were lost."),
    ("2", "The arguments are wrong, or do not go together."),
    ("3", "The target or the environment failed. The message names what, where, and what to try."),
    ("130", "It was interrupted before it was done: Ctrl-C, SIGTERM, the end of the terminal."),
];

/// Files that a command reads or writes under a name of its own.
const FILES: [(&str, &[(&str, &str)]); 4] = [
    (
        "nfskit-serve",
        &[
            (
                "/etc/nfskit/exports.toml",
                "What the service of the package exports: nfskit.service starts when it is there.",
            ),
            ("/usr/share/doc/nfskit/examples/exports.toml", "An example of it, with all words."),
            (
                "/var/lib/nfskit",
                "State of the service: handles, and replies that outlive a restart.",
            ),
        ],
    ),
    (
        "nfskit-mount",
        &[
            ("/dev/fuse", "The kernel's side of the file system."),
            ("/etc/fstab", "May name file systems of the type nfskit."),
            ("/sbin/mount.nfskit", "A link to nfskit, by which mount(8) mounts."),
            ("/sbin/mount.fuse.nfskit", "Another, by which it remounts."),
        ],
    ),
    (
        "nfskit-study",
        &[(
            "nfskit-study/",
            "report.html, run.json and calls.csv, unless --out names another folder.",
        )],
    ),
    (
        "nfskit-bench-policies",
        &[("nfskit-policies.html", "The report, unless --html names another.")],
    ),
];

/// `nfskit man DIR`
pub(crate) fn man(args: &Man) -> Result<(), Failure> {
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    let written = fs::create_dir_all(&args.out).and_then(|()| pages(&command, &args.out));
    written.map_err(|cause| output::cannot_write(&args.out, &cause))
}

/// The page of a command, and those of its commands.
fn pages(command: &Command, dir: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages(inner, dir)?;
    }
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    list(&mut page, "EXIT STATUS", &EXIT_STATUS)?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    if let Some((_, files)) = FILES.iter().find(|(of, _)| *of == name) {
        list(&mut page, "FILES", files)?;
    }
    if let Some(help) = command.get_after_help() {
        examples(&mut page, &help.to_string())?;
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    fs::write(dir.join(man.get_filename()), page)
}

/// A section of words with what each means.
fn list(page: &mut dyn Write, section: &str, words: &[(&str, &str)]) -> io::Result<()> {
    let mut roff = Roff::default();
    roff.control("SH", [section]);
    for (word, meaning) in words {
        roff.control("TP", []).text([bold(*word)]).text([roman(*meaning)]);
    }
    roff.to_writer(page)
}

/// What follows a command's help: commands, a line each.
fn examples(page: &mut dyn Write, help: &str) -> io::Result<()> {
    let mut roff = Roff::default();
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in help.lines().filter(|line| line.trim() != "Examples:") {
        roff.text([roman(line)]);
    }
    roff.control("fi", []).to_writer(page)
}

/// `nfskit completions SHELL`
pub(crate) fn completions(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "nfskit", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pages, by name.
    fn written() -> Vec<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        man(&Man { out: dir.path().to_owned() }).unwrap();
        let entries = fs::read_dir(dir.path()).unwrap().map(Result::unwrap);
        let page = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        };
        entries.map(page).collect()
    }

    #[test]
    fn every_page_tells_how_the_command_ends() {
        let pages = written();
        assert!(pages.len() > 20, "{}", pages.len());
        for (name, page) in &pages {
            let section = page.split(".SH \"EXIT STATUS\"").nth(1);
            let section = section.unwrap_or_else(|| panic!("{name}: {page}"));
            for (code, _) in EXIT_STATUS {
                assert!(
                    section.contains(&format!("\\fB{code}\\fR")),
                    "{code} in {name}: {section}"
                );
            }
        }
    }

    #[test]
    fn files_are_reported_where_there_are_any() {
        let pages = written();
        for (command, files) in FILES {
            let (_, page) = pages
                .iter()
                .find(|(name, _)| *name == format!("{command}.1"))
                .unwrap_or_else(|| panic!("no page of {command}"));
            let section = page.split(".SH FILES").nth(1).unwrap_or_else(|| panic!("{page}"));
            for (file, _) in files {
                assert!(section.replace('\\', "").contains(&format!("fB{file}fR")), "{section}");
            }
        }
        let with_files = pages.iter().filter(|(_, page)| page.contains(".SH FILES")).count();
        assert_eq!(with_files, FILES.len());
    }

    #[test]
    fn examples_keep_their_lines() {
        let pages = written();
        let (_, study) = pages.iter().find(|(name, _)| name == "nfskit-study.1").unwrap();
        let section = study.split(".SH EXAMPLES").nth(1).unwrap();
        assert!(section.trim_start().starts_with(".nf"), "{section}");
        assert!(!section.contains("Examples:"), "{section}");
    }
}
