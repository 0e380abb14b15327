#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| load::fuzzing::connectathon_log(input));
