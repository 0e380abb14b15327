//! Floors of a server that falls silent.

use std::io::{Read, Write};
use std::net::TcpListener;

use load::error::Error;
use load::floor::Outcome;
use load::floor::rtt::{Plan, run};
use net::clock::Clock;
use net::floor::error::FloorError;
use net::floor::rpc::Service;
use perf::units::Nanos;

const CALL_BYTES: usize = 40;

/// Answers NULL calls of [`CALL_BYTES`], over one connection after the other, until it has
/// answered so many, and then none.
fn server_of(mut answers: usize) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut call) = (stream.unwrap(), [0; 4 + CALL_BYTES]);
            while stream.read_exact(&mut call).is_ok() {
                if answers == 0 {
                    continue;
                }
                answers -= 1;
                // The transaction's number; a reply, accepted, no verifier, success.
                let (mark, reply) = ([0x80, 0, 0, 24], [0, 0, 0, 1]);
                let record = [&mark[..], &call[4..8], &reply, &[0; 16]].concat();
                stream.write_all(&record).unwrap();
            }
        }
    });
    Service { address, program: 100_003, version: 3, is_udp: false }
}

#[test]
fn a_message_without_an_answer_is_lost_and_its_wait_is_of_the_row() {
    // A busy machine has answered all others by then.
    let reply_limit = Nanos::from_secs(3);
    // Of ten blocks the first, 40 with 20 before them that do not count, and 5 of the second.
    let plan = Plan {
        services: vec![("nfs tcp".to_owned(), server_of(20 + 40 + 20 + 5))],
        message_bytes: vec![CALL_BYTES],
        trials: 400,
        per_s: None,
        reply_limit,
        row_time_max: Nanos::from_secs(60),
        transfers: Vec::new(),
        transfer_repeats: 0,
        packet_bytes: 1_500,
        transfer_bytes_per_s: None,
    };
    let clock = Clock::real();
    let Outcome { measured, failed } = run(&clock, None, &plan, &|| true, &mut |_| ());
    assert!(matches!(failed, Some(Error::Floor(FloorError::NoAnswer { .. }))), "{failed:?}");
    let row = &measured.series[0];
    assert_eq!((row.times.len(), row.lost), (45, 1));
    assert!(row.span >= reply_limit && row.span < plan.row_time_max, "{}", row.span);
}
