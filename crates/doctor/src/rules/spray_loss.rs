//! A host drops packets that come at once.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "spray-loss",
    about: About::Host,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["spray HOST -l 2048 -c 100 -d 2"],
    thresholds: &[Threshold {
        name: "share",
        default: 0.1,
        of: "of the packets that were sprayed (0.025 % of those of ordinary work)",
    }],
    source: "Sun 1990, section 5 (more than 10 % during a spray test; history)",
    explanation: "Spray sends faster than a host must be able to receive, so some loss is no \
                  fault. Much loss means that the other host has too few buffers, or does not \
                  serve its interrupts in time.",
    remedy: "A larger ring there (`ethtool -G`), a larger `net.core.netdev_max_backlog`; for NFS, \
             TCP, which sends no more than the other end accepts.",
    gain: "Cannot be predicted: NFS over TCP does not send like this.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let worst = case.evidence.last.sprays.iter().max_by(|a, b| a.share().total_cmp(&b.share()));
    let worst = worst.ok_or(NoFinding::NotApplicable)?;
    let numbers = format!(
        "{} dropped {} of {} packets of {} bytes ({:.1} %)",
        worst.host,
        worst.dropped,
        worst.packets,
        worst.packet_bytes,
        worst.share() * 100.0
    );
    match worst.share() > case.limit(&RULE, "share") {
        true => Found::new(&RULE, numbers, "ethtool -G there; mount with proto=tcp")
            .against("spray does not say where a packet was lost: here, on the way or there")
            .unpredicted("NFS over TCP does not send so")
            .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine};

    fn evidence(dropped: &str) -> crate::Evidence {
        let text = format!(
            "sending 100 packets of lnth 2048 to thud ...\n\tin 1.0 seconds elapsed time,\n\
             \t{dropped} dropped by thud\n"
        );
        files(&[("spray.txt", &text)])
    }

    #[test]
    fn many_packets_that_were_dropped_are_found() {
        let found = found(&RULE, &evidence("16 packets (16.00%)"));
        assert!(found.what.starts_with("thud dropped 16 of 100 packets of 2048"), "{found:?}");
    }

    #[test]
    fn some_are_fine() {
        is_fine(&RULE, &evidence("6 packets (6.00%)"));
        is_fine(&RULE, &evidence("no packets"));
    }
}
