#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| minikeeper_fuzz::split_frames(data));
