//! The seeds of the fuzz targets: made from the golden bytes, stored in `fuzz/corpus`, replayed
//! here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::fuzzing::{self, choice_of};
use crate::record::{Fragment, Message};
use crate::rpc;
use crate::rpc::{CallHeader, OpaqueAuth};
use crate::xdr::Encode;

use super::bytes_of;
use super::messages::{Golden, Part, goldens};

/// What a target makes of one input.
type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 4] = [
    ("decode_call", fuzzing::decode_call),
    ("decode_reply", fuzzing::decode_reply),
    ("deframe", fuzzing::deframe),
    ("dissect", fuzzing::dissect),
];

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Inputs by their path.
fn seeds() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut seeds = BTreeMap::new();
    let mut add = |target: &str, name: &str, bytes: Vec<u8>| {
        let path = folder(target).join(format!("{name}.seed"));
        assert_eq!(seeds.insert(path, bytes), None, "two seeds called {name}");
    };
    for golden in goldens() {
        let choice = choice_of(golden.procedure);
        let (target, message) = match golden.part {
            Part::Args => ("decode_call", call(&golden)),
            Part::Ok | Part::Fail => ("decode_reply", reply(golden.bytes)),
        };
        let chosen = [&[choice], &message[..]].concat();
        let name = golden.name();
        add("dissect", &name, chosen.clone());
        add(target, &name, if golden.part == Part::Args { message } else { chosen });
    }
    for (name, text) in refusals() {
        add("decode_reply", name, [&[0], bytes_of(text)].concat());
    }
    for (name, stream) in streams() {
        add("deframe", name, stream);
    }
    seeds
}

/// A whole call with the golden arguments.
fn call(golden: &Golden) -> Vec<u8> {
    let credential = OpaqueAuth::sys(bytes_of(rpc::auth::tests::BODY));
    let header = CallHeader::new(0x1a, golden.procedure, credential);
    [&header.to_bytes(), golden.bytes].concat()
}

/// A whole reply with the golden results.
fn reply(results: &[u8]) -> Vec<u8> {
    [bytes_of(rpc::reply::tests::SUCCESS), results].concat()
}

fn refusals() -> [(&'static str, &'static str); 3] {
    use rpc::reply::tests as t;
    [
        ("prog-mismatch", t::PROG_MISMATCH),
        ("rpc-mismatch", t::RPC_MISMATCH),
        ("auth-error", t::AUTH_ERROR),
    ]
}

/// Streams of records, after the byte that chooses the size of the chunks.
fn streams() -> [(&'static str, Vec<u8>); 4] {
    let header = bytes_of(rpc::call::tests::HEADER);
    let whole = Message::new(header.to_vec());
    let whole = [&whole.marker()[..], header].concat();
    let fragment = |last, bytes: &[u8]| {
        let len = u32::try_from(bytes.len()).unwrap();
        [&Fragment { last, len }.to_header()[..], bytes].concat()
    };
    let (front, back) = header.split_at(10);
    let divided = [fragment(false, front), fragment(false, &[]), fragment(true, back)].concat();
    let too_long = Fragment { last: true, len: 0x7fff_ffff };
    [
        ("whole", [&[6], &whole[..], &whole].concat()),
        ("divided", [&[0], &divided[..], &whole, &divided].concat()),
        ("too-long", [&[2], &whole[..], &too_long.to_header()].concat()),
        ("empty-fragments", [&[255], &[0; 4 * 20][..]].concat()),
    ]
}

#[test]
fn seeds_are_those_of_the_golden_bytes() {
    for (path, bytes) in seeds() {
        if env::var_os("NFSKIT_UPDATE_SEEDS").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let found = fs::read(&path).unwrap_or_default();
        assert!(found == bytes, "{} is out of date; see fuzz/README.md", path.display());
    }
}

#[test]
fn every_seed_passes_its_target() {
    for (name, target) in TARGETS {
        let files = fs::read_dir(folder(name)).unwrap();
        let inputs: Vec<_> = files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
        assert!(!inputs.is_empty(), "{name} has no seeds");
        inputs.iter().for_each(|input| target(input));
    }
}

#[test]
fn a_seed_reaches_the_message_it_was_made_for() {
    for golden in goldens().iter().filter(|golden| golden.part == Part::Args) {
        let line = crate::dissect::call(&call(golden));
        let start = format!("call xid=0x1a {}", golden.procedure);
        assert!(line.starts_with(&start) && !line.contains('('), "{line}");
    }
}
