#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| proxy::fuzzing::write_back(input));
