//! What one sample of `nfskit stat`, and of `nfskit top`, costs: 50 mounts with 80 operations each,
//! of which all are called in every second, or every fifth.
//!
//! `cargo run --release -p nfskit-watch --example stat_cost` reads a copy of /proc that it makes,
//! takes rates against an older one, and makes the text, or the tables, their history and the
//! picture of 80 columns and 24 lines. Printing these, and the kernel's own making of the file, are
//! not in it.

use std::fmt::Write;
use std::fs;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use watch::place::Place;
use watch::sample::Sample;
use watch::top::State;
use watch::{tables, text};

const MOUNTS: u64 = 50;
const OPERATIONS: u64 = 80;
const SAMPLES: u64 = 200;

fn main() {
    for (what, one_in) in [("all", 1), ("every fifth", 5)] {
        measure(what, one_in);
    }
}

/// One operation in so many is called.
fn measure(what: &str, one_in: u64) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str, step| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.join("self")).expect("a directory");
        fs::write(path.join("self/mountstats"), counters(step, one_in)).expect("a file");
        Place::Saved(path)
    };
    let (before, now) = (place("before", 0).read().0, place("now", 1));
    let begin = processor_ns();
    let mut bytes = 0;
    for _ in 0..SAMPLES {
        let (sample, ignored) = now.read();
        assert!(ignored.is_empty(), "{ignored:?}");
        let rates = sample.rates(Some((&before, 1.0)));
        let mounts = rates.mounts.iter().flat_map(|mounts| &mounts.mounts);
        bytes += mounts.map(|mount| text::table(&tables::mount(mount)).len()).sum::<usize>();
    }
    let each_us = (processor_ns() - begin) as f64 / SAMPLES as f64 / 1e3;
    let share = each_us / 1e4;
    println!(
        "{what}, stat: {each_us:.0} us of processor time a sample, {share:.2} % at one a second"
    );
    println!("  {} bytes of text a sample", bytes as u64 / SAMPLES);
    let each_us = of_top(&before, &now);
    let share = each_us / 1e4;
    println!(
        "{what}, top: {each_us:.0} us of processor time a sample, {share:.2} % at one a second"
    );
}

/// The same for what top does with it.
fn of_top(before: &Sample, now: &Place) -> f64 {
    let mut state = State::new("every 1s");
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal in memory");
    let begin = processor_ns();
    for number in 0..SAMPLES {
        let rates = now.read().0.rates(Some((before, 1.0)));
        let tables = tables::of_kernel(&rates, tables::Depth::Operations);
        state.update(tables, &number.to_string(), Vec::new());
        terminal.draw(|frame| state.draw(frame)).expect("memory");
    }
    (processor_ns() - begin) as f64 / SAMPLES as f64 / 1e3
}

/// Time on a processor, from the scheduler.
fn processor_ns() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").expect("a Linux kernel");
    let first = text.split_whitespace().next().expect("three numbers");
    first.parse().expect("a number")
}

fn counters(step: u64, one_in: u64) -> String {
    let mut text = String::new();
    for mount in 0..MOUNTS {
        let age = 1_000 + step;
        write!(
            text,
            "device server:/export{mount} mounted on /mnt/{mount} with fstype nfs4 statvers=1.1\n\
             \topts:\trw,vers=4.2,hard,proto=tcp,sec=sys\n\tage:\t{age}\n\
             \tevents:\t{}\n\tbytes:\t1 2 3 4 5 6 7 8\n\
             \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
             \txprt:\ttcp 800 1 1 0 0 9 9 0 9 0 64 0 0\n\tper-op statistics\n",
            vec!["1"; 27].join(" ")
        )
        .expect("a String takes everything");
        for operation in 0..OPERATIONS {
            let is_called = u64::from(operation % one_in == 0);
            let calls = 1_000 + step * is_called * (operation + 1);
            writeln!(
                text,
                "\t  OPERATION{operation}: {calls} {calls} 0 {} {} 10 {} {} 0",
                calls * 200,
                calls * 900,
                calls * 2,
                calls * 3
            )
            .expect("a String takes everything");
        }
        text.push('\n');
    }
    text
}
