//! Logs as they are found.

use perf::units::Nanos;

use super::*;
use crate::basic::lines::Line;

/// As the suite prints on a fast file system: one-digit hundredths, filled with a blank.
const PASSED: &str = "\
Fri Mar 22 23:26:33 2019 Start file system testing ...
Starting BASIC tests: test directory /mnt/testdir (arg: -t)

./test1: File and directory creation test
\tcreated 155 files 62 directories 5 levels deep in 0.1  seconds
\t./test1 ok.

./test5: read and write
\twrote 1048576 byte file 10 times in 0.1  seconds (699050666 bytes/sec)
\tread 1048576 byte file 10 times in 0.0  seconds (> 10485760 bytes/sec)
\t./test5 ok.
TESTARG=-t
./test6: readdir
        20500 entries read, 200 files in 1.70 seconds
        ./test6 ok.

Congratulations, you passed the basic tests!
";

fn seconds(log: &Log) -> Vec<(Option<f64>, Reading)> {
    let tests = log.runs.iter().flat_map(|run| &run.tests);
    let results = tests.flat_map(|test| &test.results);
    results.filter_map(|result| result.time.map(|time| (time.seconds(), time.reading))).collect()
}

fn one(line: &str) -> Time {
    let log = read(line.as_bytes());
    assert_eq!(log.problems, []);
    log.runs[0].tests[0].results[0].time.unwrap()
}

#[test]
fn a_log_of_the_suite_is_read_with_its_hundredths() {
    let log = read(PASSED.as_bytes());
    assert_eq!((log.problems.len(), log.runs.len(), log.lines), (0, 1, 17));
    let run = &log.runs[0];
    assert_eq!((run.line, run.passed), (2, Some(true)));
    assert_eq!(run.directory.as_deref(), Some("/mnt/testdir"));
    assert_eq!(run.argument.as_deref(), Some("-t"));
    let names: Vec<&str> = run.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["test1", "test5", "test6"]);
    assert!(run.tests.iter().all(|test| test.passed));
    let rate = Reading::Rate { is_hundredths: true };
    let expected = [
        (Some(0.01), Reading::Blank),
        (Some(0.01), rate),
        (Some(0.0), Reading::Plain),
        (Some(1.7), Reading::Plain),
    ];
    assert_eq!(seconds(&log), expected);
    let wrote = &run.tests[1].results[0];
    assert_eq!((wrote.line, wrote.numbers), (9, [1_048_576, 10, 0]));
    assert!((wrote.time.unwrap().from_rate_s.unwrap() - 0.015).abs() < 1e-9);
    assert_eq!(run.tests[1].results[1].rate, Some(Rate::Above(10_485_760)));
}

#[test]
fn one_digit_and_one_blank_have_two_readings() {
    let time = one("500 getcwd and stat calls in 1.7 seconds");
    assert_eq!((time.hundredths_s, time.decimal_s), (1.07, 1.7));
    assert_eq!((time.reading, time.seconds()), (Reading::Ambiguous, None));
}

#[test]
fn bytes_a_second_decide_between_both_readings() {
    // 10,485,760 bytes in 0.513 s, which the suite prints as 0.51: no question. 0.07 s and 0.7 s:
    let hundredths = one("wrote 1048576 byte file 10 times in 0.7 seconds (145635555 bytes/sec)");
    assert_eq!(hundredths.reading, Reading::Rate { is_hundredths: true });
    assert_eq!(hundredths.seconds(), Some(0.07));
    let decimal = one("wrote 1048576 byte file 10 times in 0.7 seconds (14979657 bytes/sec)");
    assert_eq!(decimal.reading, Reading::Rate { is_hundredths: false });
    assert_eq!(decimal.seconds(), Some(0.7));
    let neither = one("wrote 1048576 byte file 10 times in 0.7 seconds (1000000 bytes/sec)");
    assert_eq!(neither.reading, Reading::Ambiguous);
}

#[test]
fn what_is_decided_of_one_line_holds_for_its_run_and_no_other() {
    let text = "\
Starting BASIC tests: test directory /a (arg: -t)
\t400 symlinks and readlinks on 10 files in 0.5 seconds
\twrote 1048576 byte file 10 times in 0.7 seconds (145635555 bytes/sec)
Congratulations, you passed the basic tests!
Starting BASIC tests: test directory /b (arg: -t)
\t400 symlinks and readlinks on 10 files in 0.5 seconds
";
    let log = read(text.as_bytes());
    let found: Vec<Option<f64>> = seconds(&log).into_iter().map(|(seconds, _)| seconds).collect();
    assert_eq!(found, [Some(0.05), Some(0.07), None]);
    assert_eq!(seconds(&log)[0].1, Reading::Run { is_hundredths: true });
    assert_eq!(log.runs[1].passed, None);
}

#[test]
fn our_own_lines_are_read_as_they_were_written() {
    for work in Work::ALL {
        for millis in [0, 10, 70, 100, 700, 1_000, 1_070, 61_700] {
            let line = Line { work, numbers: [7, 3, 2], elapsed: Nanos::from_millis(millis) };
            let log = read(format!("\t{line}\n\t{}\n", line.untimed()).as_bytes());
            assert_eq!(log.problems, [], "{line}");
            let results = &log.runs[0].tests[0].results;
            assert_eq!((results[0].work, results[1].work), (work, work), "{line}");
            let time = results[0].time.unwrap();
            assert_eq!(time.reading, Reading::Plain);
            assert!((time.seconds().unwrap() - millis as f64 / 1000.0).abs() < 1e-9, "{line}");
            assert_eq!(results[1].time, None);
        }
    }
}

#[test]
fn a_run_that_failed_says_which_test_and_why() {
    let text = "\
Starting BASIC tests: test directory /mnt/nfs/client.test (arg: -t)

./test5: read and write
\t./test5: (/mnt/nfs/client.test) 'bigfile' has size 5, should be 0
basic tests failed
Tests failed, leaving /mnt/nfs mounted
";
    let log = read(text.as_bytes());
    let run = &log.runs[0];
    assert_eq!((run.passed, run.tests.len()), (Some(false), 1));
    assert!(!run.tests[0].passed);
    assert_eq!(run.tests[0].complaints.len(), 1);
    assert!(run.tests[0].complaints[0].ends_with("should be 0"));
}

#[test]
fn single_programs_need_no_header() {
    let text = "/usr/lib/cthon/basic/test4a: getattr and lookup\n\t1000 stats on 10 files\n\
                \t/usr/lib/cthon/basic/test4a ok.\ntest7b: link\n\t100 links on 10 files in 0.33 \
                seconds\n";
    let log = read(text.as_bytes());
    let tests = &log.runs[0].tests;
    assert_eq!((tests[0].name.as_str(), tests[0].passed), ("test4a", true));
    assert_eq!((tests[1].name.as_str(), tests[1].passed), ("test7b", false));
    assert_eq!(tests[0].results[0].work, Work::Stats);
    assert_eq!(tests[1].results[0].work, Work::Linked);
    let grepped = read(
        b"500 getcwd and stat calls in 0.10 seconds\n1500 statfs calls in 0.50 \
                         seconds\n",
    );
    let names: Vec<&str> = grepped.runs[0].tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["test3", "test9"]);
}

#[test]
fn what_is_broken_is_reported_with_its_line_and_the_rest_is_read() {
    let text = "\
1500 statfs calls in 0.50 seconds
1500 statfs calls in x.y seconds
1500 statfs calls in 5 seconds
1500 statfs calls in 0.50
1500 statfs calls today
99999999999999999999999 statfs calls in 0.50 seconds
created 155 files many directories 5 levels deep in 0.50 seconds
wrote 8192 byte file 1 times in 0.50 seconds (fast)
1500 statfs calls in 1.00 seconds
";
    let log = read(text.as_bytes());
    let lines: Vec<usize> = log.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8]);
    assert!(log.problems[0].to_string().starts_with("line 2: a time that is none: "));
    assert_eq!(seconds(&log).len(), 2);
}

#[test]
fn a_rate_that_the_suites_integer_could_not_hold_decides_nothing() {
    let line = "read 1048576 byte file 10 times in 0.2 seconds (-2147483648 bytes/sec)";
    assert_eq!(one(line).reading, Reading::Ambiguous);
}

#[test]
fn times_before_the_lines_do_not_matter() {
    let mut stamped = String::new();
    for line in PASSED.lines() {
        stamped.push_str(&format!("[2019-03-22 23:26:33,123] host cthon: {line}\r\n"));
    }
    let (plain, stamped) = (read(PASSED.as_bytes()), read(stamped.as_bytes()));
    assert_eq!(stamped.runs, plain.runs);
    assert_eq!(stamped.problems, []);
    let sentence = read(b"so I read 10 pages, and test1: it said 12 links\n");
    assert_eq!((sentence.runs.len(), sentence.problems.len()), (0, 0));
}

#[test]
fn whatever_it_is_it_is_read() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..2_000 {
        let mut bytes = PASSED.as_bytes().to_vec();
        for _ in 0..random.usize(1..20) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.choice(b"0123456789. \n\t(:>-").copied().unwrap()),
            }
        }
        crate::fuzzing::connectathon_log(&bytes);
    }
    crate::fuzzing::connectathon_log(b"");
    crate::fuzzing::connectathon_log(&[0xff; 10_000]);
    crate::fuzzing::connectathon_log("1500 statfs calls in 0.5".repeat(5_000).as_bytes());
}

#[test]
fn the_seeds_of_the_fuzz_target_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/connectathon_log");
    let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|seed| seed.unwrap()).collect();
    assert!(seeds.len() >= 4);
    for seed in seeds {
        crate::fuzzing::connectathon_log(&std::fs::read(seed.path()).unwrap());
    }
}
