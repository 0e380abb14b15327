#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| load::fuzzing::mix_listing(input));
