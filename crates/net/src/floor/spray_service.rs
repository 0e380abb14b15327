//! The far end's answers to RPC over UDP: the spray program, counted for everybody together.

use perf::units::Instant;
use wire::rpc::{AcceptStatus, Call, ReplyHeader};
use wire::spray::{Array, Counted, PROGRAM, Procedure, VERSION};
use wire::xdr::{Decode, Encode, Reader};

/// SPRAY calls since the last CLEAR.
#[derive(Clone, Copy, Debug)]
pub(super) struct SprayService {
    calls: u32,
    cleared: Instant,
}

impl SprayService {
    pub(super) fn new(now: Instant) -> Self {
        Self { calls: 0, cleared: now }
    }

    /// The reply to a datagram, if it is a call and one that is answered. A reply is never longer
    /// than its call.
    pub(super) fn answer(&mut self, datagram: &[u8], now: Instant) -> Option<Vec<u8>> {
        let mut reader = Reader::new(datagram);
        let Call::Version2(header) = Call::decode(&mut reader).ok()? else { return None };
        let (xid, mut reply) = (header.xid, Vec::with_capacity(64));
        let mut accepted = |status| ReplyHeader::accepted(xid, status).encode(&mut reply);
        if header.program != PROGRAM {
            accepted(AcceptStatus::ProgUnavail);
        } else if header.version != VERSION {
            accepted(AcceptStatus::ProgMismatch { low: VERSION, high: VERSION });
        } else {
            match Procedure::from_code(header.procedure) {
                Some(Procedure::Spray) => {
                    if Array::decode(&mut reader).is_ok() {
                        self.calls = self.calls.saturating_add(1);
                    }
                    return None;
                }
                Some(Procedure::Null) => accepted(AcceptStatus::Success),
                Some(Procedure::Clear) => {
                    *self = Self::new(now);
                    accepted(AcceptStatus::Success);
                }
                Some(Procedure::Get) => {
                    accepted(AcceptStatus::Success);
                    self.counted(now).encode(&mut reply);
                }
                None => accepted(AcceptStatus::ProcUnavail),
            }
        }
        Some(reply)
    }

    fn counted(&self, now: Instant) -> Counted {
        let micros = now.since(self.cleared).as_nanos() / 1_000;
        Counted {
            calls: self.calls,
            secs: u32::try_from(micros / 1_000_000).unwrap_or(u32::MAX),
            micros: u32::try_from(micros % 1_000_000).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use perf::units::Nanos;
    use wire::rpc::{CallHeader, OpaqueAuth};
    use wire::xdr::from_bytes;

    use super::*;

    fn call(program: u32, version: u32, procedure: u32, args: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        CallHeader { xid: 9, program, version, procedure, credential, verifier }.encode(&mut bytes);
        bytes.extend_from_slice(args);
        bytes
    }

    #[test]
    fn sprays_are_counted_between_clear_and_get() {
        let mut service = SprayService::new(Instant::EPOCH);
        let mut array = Vec::new();
        Array { data: &[1; 100] }.encode(&mut array);
        let spray = call(PROGRAM, VERSION, 1, &array);
        let at = |secs| Instant::EPOCH + Nanos::from_secs(secs);
        assert_eq!(service.answer(&spray, at(1)), None);
        assert!(service.answer(&call(PROGRAM, VERSION, 3, &[]), at(2)).is_some());
        assert_eq!((0..5).find_map(|_| service.answer(&spray, at(3))), None);
        // An array that is cut off is none.
        assert_eq!(service.answer(&spray[..spray.len() - 4], at(3)), None);
        let reply = service.answer(&call(PROGRAM, VERSION, 2, &[]), at(5)).unwrap();
        let counted: Counted = from_bytes(&reply[24..]).unwrap();
        assert_eq!(counted, Counted { calls: 5, secs: 3, micros: 0 });
    }

    #[test]
    fn other_programs_are_refused_and_noise_is_not_answered() {
        let mut service = SprayService::new(Instant::EPOCH);
        let others = [(100_003, 3, 0), (PROGRAM, 2, 0), (PROGRAM, VERSION, 4)];
        for (program, version, procedure) in others {
            let request = call(program, version, procedure, &[]);
            let reply = service.answer(&request, Instant::EPOCH).unwrap();
            assert!(reply.len() <= request.len());
            let header: ReplyHeader<'_> = Decode::decode(&mut Reader::new(&reply)).unwrap();
            assert!(header != ReplyHeader::success(9));
        }
        for noise in [&b""[..], b"hello", &[0xff; 60]] {
            assert_eq!(service.answer(noise, Instant::EPOCH), None);
        }
    }
}
