//! Every operation of NFS version 4: its arguments are walked over to the next one.

use crate::frames::{RAW, WHOLE, analyze, ipv4, pcap, udp};

/// Arguments by hand.
#[derive(Clone, Default)]
struct Args(Vec<u8>);

impl Args {
    fn words(mut self, count: usize) -> Self {
        self.0.extend([0; 4].repeat(count));
        self
    }

    fn word(mut self, word: u32) -> Self {
        self.0.extend(word.to_be_bytes());
        self
    }

    /// An opaque of so many bytes.
    fn bytes(mut self, len: u32) -> Self {
        self.0.extend(len.to_be_bytes());
        self.0.extend([b'x'].repeat((len as usize).next_multiple_of(4)));
        self
    }

    fn attributes(self) -> Self {
        self.bitmap().bytes(12)
    }

    fn bitmap(self) -> Self {
        self.word(2).words(2)
    }

    fn channel(self, rdma: u32) -> Self {
        self.words(6).word(rdma).words(rdma as usize)
    }

    /// Callback security: none, AUTH_SYS with two groups, RPCSEC_GSS.
    fn callback_security(self) -> Self {
        let system = self.word(3).word(0).word(1).word(9).bytes(5).words(2).word(2).words(2);
        system.word(6).word(1).bytes(16).bytes(17)
    }
}

fn args() -> Args {
    Args::default()
}

/// Words of a stateid.
const STATEID: usize = 4;

/// Each operation by its number, with its arguments as the RFCs' XDR has them; some in several
/// forms.
fn forms() -> Vec<(u32, Args)> {
    let open = |how: Args, claim: Args| {
        let mut open = args().words(5).bytes(9);
        open.0.extend(how.0);
        open.0.extend(claim.0);
        open
    };
    let create = |mode: u32| args().word(1).word(mode);
    vec![
        (3, args().words(1)),
        (4, args().words(1 + STATEID)),
        (5, args().words(3)),
        (6, args().word(2).bytes(4).attributes()),
        (6, args().word(5).bytes(30).bytes(4).attributes()),
        (6, args().word(4).words(2).bytes(4).attributes()),
        (7, args().words(2)),
        (8, args().words(STATEID)),
        (9, args().bitmap()),
        (10, args()),
        (11, args().bytes(3)),
        (12, args().words(6).word(1).words(1 + STATEID + 1 + 2).bytes(11)),
        (12, args().words(6).word(0).words(STATEID + 1)),
        (13, args().words(5 + 2).bytes(11)),
        (14, args().words(2 + STATEID + 4)),
        (15, args().bytes(7)),
        (16, args()),
        (17, args().attributes()),
        (18, open(args().word(0), args().word(0).bytes(4))),
        (18, open(create(0).attributes(), args().word(0).bytes(4))),
        (18, open(create(2).words(2), args().word(1).words(1))),
        (18, open(create(3).words(2).attributes(), args().word(2).words(STATEID).bytes(5))),
        (18, open(args().word(0), args().word(3).bytes(4))),
        (18, open(args().word(0), args().word(4))),
        (18, open(args().word(0), args().word(5).words(STATEID))),
        (18, open(args().word(0), args().word(6))),
        (19, args().words(1)),
        (20, args().words(STATEID + 1)),
        (21, args().words(STATEID + 3)),
        (23, args()),
        (24, args()),
        (25, args().words(STATEID + 3)),
        (26, args().words(6).bitmap()),
        (27, args()),
        (28, args().bytes(6)),
        (29, args().bytes(6).bytes(9)),
        (30, args().words(2)),
        (31, args()),
        (32, args()),
        (33, args().bytes(6)),
        (34, args().words(STATEID).attributes()),
        (35, args().words(2).bytes(20).words(1).bytes(3).bytes(17).words(1)),
        (36, args().words(4)),
        (37, args().attributes()),
        (38, args().words(STATEID + 3).bytes(333)),
        (39, args().words(2).bytes(13)),
        (40, args().words(1).callback_security()),
        (41, args().words(4 + 2)),
        (42, args().words(2).bytes(21).words(1).word(0).word(0)),
        (42, args().words(2).bytes(21).words(1).word(1).bitmap().bitmap().word(0)),
        (
            42,
            args()
                .words(2)
                .bytes(21)
                .words(1)
                .word(2)
                .bitmap()
                .bitmap()
                .word(1)
                .bytes(9)
                .word(2)
                .bytes(9)
                .bytes(11)
                .words(2)
                .word(1)
                .bytes(10)
                .bytes(5)
                .words(3),
        ),
        (43, args().words(4).channel(0).channel(1).words(1).callback_security()),
        (44, args().words(4)),
        (45, args().words(STATEID)),
        (46, args().words(1).bitmap().words(6).bitmap().bitmap()),
        (47, args().words(4 + 2).bitmap()),
        (48, args().words(2 + 2 + 2)),
        (49, args().words(5 + STATEID).word(1).words(2).word(1).words(3).words(1).bytes(40)),
        (49, args().words(5 + STATEID).word(0).word(0).words(1).bytes(0)),
        (50, args().words(3 + 6 + STATEID + 1)),
        (51, args().words(3).word(1).words(4 + STATEID).bytes(50)),
        (51, args().words(3).word(3)),
        (52, args().words(1)),
        (53, args().words(8)),
        (54, args().bytes(32).bytes(20)),
        (55, args().word(3).words(3 * STATEID)),
        (56, args().words(1).word(4)),
        (56, args().words(1).word(1).words(1)),
        (57, args().words(2)),
        (58, args().words(1)),
        (59, args().words(STATEID + 4)),
        (60, args().words(2 * STATEID + 6 + 2).word(0)),
        (60, args().words(2 * STATEID + 6 + 2).word(2).word(1).bytes(9).word(3).bytes(3).bytes(17)),
        (61, args().words(STATEID).word(2).bytes(22)),
        (62, args().words(STATEID + 4)),
        (63, args().words(STATEID + 4).bitmap()),
        (64, args().words(4 + STATEID).word(2).words(2 * 6)),
        (65, args().words(4 + STATEID + 4 + 4 + 4 + 1).bytes(28)),
        (66, args().words(STATEID)),
        (67, args().words(STATEID)),
        (68, args().words(STATEID + 3)),
        (69, args().words(STATEID + 3)),
        (70, args().words(STATEID + 1 + 8 + 1 + 2).bytes(70)),
        (71, args().words(2 * STATEID + 6)),
        (72, args().bytes(9)),
        (73, args().words(1).bytes(9).bytes(100)),
        (74, args().words(3)),
        (75, args().bytes(9)),
    ]
}

/// A COMPOUND of these operations over UDP.
fn compound(operations: &[(u32, Args)]) -> Vec<u8> {
    let mut call = Vec::new();
    for word in [7, 0, 2, 100_003, 4, 1, 0, 0, 0, 0] {
        call.extend(u32::to_be_bytes(word));
    }
    let count = u32::try_from(operations.len()).unwrap();
    call.extend(args().bytes(3).word(2).word(count).0); // tag, minor version
    for (number, args) in operations {
        call.extend(number.to_be_bytes());
        call.extend(&args.0);
    }
    ipv4(17, true, &udp(true, &call))
}

#[test]
fn behind_every_operation_the_next_one_is_found() {
    let forms = forms();
    for number in (3..=75).filter(|number| *number != 22) {
        assert!(forms.iter().any(|form| form.0 == number), "no form of {number}");
    }
    for (number, form) in forms {
        // LINK and SETATTR occur once each, unless they are what is tried.
        let before = (22, args().bytes(28));
        let behind = if number == 5 { (11, args().bytes(4)) } else { (5, args().words(3)) };
        let packet = compound(&[before, (number, form.clone()), behind.clone()]);
        let found = analyze(pcap(RAW, &[packet], WHOLE));
        let counts = found.analyzer.totals().v4_operations;
        assert_eq!(counts[number as usize], 1, "{number}");
        assert_eq!(counts[behind.0 as usize], 1, "behind {number} with {} bytes", form.0.len());
    }
}

#[test]
fn at_an_operation_that_nobody_knows_the_list_ends() {
    let packet = compound(&[(22, args().bytes(28)), (99, args().words(4)), (5, args().words(3))]);
    let found = analyze(pcap(RAW, &[packet], WHOLE));
    let counts = found.analyzer.totals().v4_operations;
    assert_eq!((counts[22], counts[5]), (1, 0));
    assert_eq!(found.analyzer.totals().calls(), 1);
}

#[test]
fn arguments_that_are_cut_off_anywhere_are_survived() {
    for (number, form) in forms() {
        for len in 0..form.0.len() {
            let cut = Args(form.0[..len].to_vec());
            let found = analyze(pcap(RAW, &[compound(&[(number, cut)])], WHOLE));
            assert_eq!(found.analyzer.totals().calls(), 1, "{number} {len}");
        }
    }
}

#[test]
fn layouts_go_along_with_what_they_are_for() {
    let close = (4, args().words(5));
    let layout = (51, args().words(3).word(3));
    let packet = compound(&[(53, args().words(8)), (22, args().bytes(28)), layout, close]);
    let found = analyze(pcap(RAW, &[packet], WHOLE));
    let operations: Vec<String> =
        found.analyzer.totals().operations().map(|(operation, _)| operation.to_string()).collect();
    assert_eq!(operations, ["CLOSE"]);
}

#[test]
fn calls_from_the_server_are_named_by_what_they_are_for() {
    // CB_SEQUENCE that refers to two calls, then CB_RECALL.
    let mut call = Vec::new();
    for word in [9, 0, 2, 0x4000_0001, 1, 1, 0, 0, 0, 0] {
        call.extend(u32::to_be_bytes(word));
    }
    let sequence = args().word(11).words(8).word(1).words(4).word(2).words(4);
    let recall = args().word(4).words(5).bytes(28);
    call.extend([args().word(0).word(1).word(0).word(2).0, sequence.0, recall.0].concat());
    let reply: Vec<u8> =
        [9, 1, 0, 0, 0, 0, 0, 0, 0].iter().flat_map(|word| u32::to_be_bytes(*word)).collect();
    let packets = [ipv4(17, false, &udp(false, &call)), ipv4(17, true, &udp(true, &reply))];
    let found = analyze(pcap(RAW, &packets, WHOLE));
    assert_eq!(found.transactions.len(), 1);
    assert_eq!(found.transactions[0].operation.to_string(), "NFS v4 callback.CB_RECALL");
}

#[test]
fn a_compound_that_is_cut_off_before_its_operation_has_no_name() {
    let (sequence, handle) = ((53, args().words(8)), (22, args().bytes(28)));
    let (getattr, write) = ((9, args().bitmap()), (38, args().words(STATEID + 3).bytes(333)));
    // The names that it has when it is cut off somewhere, in their order, and its handle.
    let names = |operations: &[(u32, Args)]| {
        let packet = compound(operations);
        let mut names = Vec::new();
        for snap in 28 + 24..=packet.len() {
            let totals_of = analyze(pcap(RAW, std::slice::from_ref(&packet), snap)).analyzer;
            let [(operation, total)] = totals_of.totals().operations().collect::<Vec<_>>()[..]
            else {
                panic!("one operation at {snap}")
            };
            assert_eq!(total.calls, 1);
            let is_cut = totals_of.totals().v4_cut == 1;
            assert_eq!(is_cut, operation.is_nameless(), "{snap}");
            names.push(operation.to_string());
        }
        names.dedup();
        names
    };
    let all = [sequence.clone(), handle.clone(), getattr.clone(), write];
    assert_eq!(names(&all), ["COMPOUND", "WRITE"]);
    assert_eq!(names(&[sequence.clone(), handle, getattr]), ["COMPOUND", "GETATTR"]);
    assert_eq!(names(&[sequence]), ["COMPOUND", "SEQUENCE"]);
}
