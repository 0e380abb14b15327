//! TCP has used up the memory that it may.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "socket-memory",
    about: About::Host,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/net/sockstat", "/proc/sys/net/ipv4/tcp_mem"],
    thresholds: &[Threshold {
        name: "share",
        default: 1.0,
        of: "of the pages from which on TCP gives its sockets less (the second of tcp_mem)",
    }],
    source: "tcp(7), tcp_mem",
    explanation: "Above the second number of `tcp_mem`, TCP shrinks the windows of all \
                  connections; above the third, it drops what arrives.",
    remedy: "Find what holds so much (`ss -tm`); a larger `net.ipv4.tcp_mem`.",
    gain: "Cannot be predicted: which connection lost how much of its window is not counted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let used = case.evidence.last.sockets.as_ref().and_then(|all| all.of("TCP", "mem"));
    let limits = case.evidence.setting("proc/sys/net/ipv4/tcp_mem").unwrap_or("");
    let limits: Vec<f64> =
        limits.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let (Some(used), &[_, pressure, most]) = (used, &limits[..]) else {
        return Err(NoFinding::NotApplicable);
    };
    let numbers = format!("TCP holds {used} pages, and shrinks windows from {pressure:.0} on");
    match used as f64 >= case.limit(&RULE, "share") * pressure {
        true => Found::new(&RULE, numbers, "ss -tm; sysctl net.ipv4.tcp_mem")
            .severity(if used as f64 >= most { Severity::High } else { Severity::Medium })
            .unpredicted("which connection lost how much is not counted")
            .into(),
        false => Err(NoFinding::Fine(format!("TCP holds {used} of {pressure:.0} pages"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, is_quiet};

    fn evidence(pages: u64) -> crate::Evidence {
        let sockets = format!("sockets: used 9\nTCP: inuse 3 orphan 0 tw 0 alloc 4 mem {pages}\n");
        files(&[("proc/net/sockstat", &sockets), ("proc/sys/net/ipv4/tcp_mem", "92\t123\t185\n")])
    }

    #[test]
    fn memory_that_is_used_up_is_found() {
        assert_eq!(found(&RULE, &evidence(130)).severity, Severity::Medium);
        assert_eq!(found(&RULE, &evidence(200)).severity, Severity::High);
    }

    #[test]
    fn memory_that_is_free_is_fine() {
        is_fine(&RULE, &evidence(7));
        is_quiet(&RULE, &files(&[]));
    }
}
