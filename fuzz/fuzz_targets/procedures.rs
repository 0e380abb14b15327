#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| server::fuzzing::procedures_survive(input));
