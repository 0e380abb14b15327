#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| server::fuzzing::engine_survives(input));
