#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| minikeeper_fuzz::replay_recording(data));
