#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| log::fuzzing::write_log(input));
