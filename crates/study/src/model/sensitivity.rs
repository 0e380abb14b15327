//! `nfskit model sensitivity`: what L, o and G do to a server that was measured.

use harness::exit::Failure;
use harness::table::{Table, right};
use perf::model::error::ModelError;
use perf::model::queue::file_server::{Bottleneck, FileServer};
use perf::model::saved::SavedPath;
use perf::model::sensitivity::{
    Mix, Packets, base_per_latency, gap_threshold_us_per_kib, saturation_per_s,
};
use perf::model::transaction::{Path, Transfer};
use perf::model::{sweep, whatif};

use super::page::{Page, span};
use super::source::Source;
use super::{fit, infer};
use crate::model::args::cycle::Sensitivity as Args;

/// What a fit says of the server: all that the relations need.
struct Seen {
    /// How it was found.
    model: &'static str,
    /// Base response time, us.
    base_us: f64,
    /// S of the stage that each message's o is added to, us, and its servers.
    service_us: f64,
    servers: u32,
    /// What limits where o is small, and is no processor: calls a second.
    other_per_s: f64,
    /// Of a READ or a WRITE.
    data_bytes: u64,
}

impl Seen {
    /// One server, and nothing else that limits.
    const ONE: Self = Self {
        model: "",
        base_us: 0.0,
        service_us: 0.0,
        servers: 1,
        other_per_s: f64::INFINITY,
        data_bytes: 8192,
    };
}

/// Those of the paper's figures 5 and 6, us.
const ADDED_US: [f64; 7] = [0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0];

/// What the command shows.
pub(super) fn page(args: &Args) -> Result<Page, Failure> {
    let wrong = |error: ModelError| {
        Failure::usage(error, "nfskit model sensitivity --help shows an example")
    };
    let Args { reads, writes, .. } = args;
    if reads + writes > 100 {
        let all = reads + writes;
        let what = format!("--reads {reads} and --writes {writes} are {all} of 100 operations");
        return Err(Failure::usage(what, "nfskit model sensitivity --help shows an example"));
    }
    let seen = seen(args)?;
    let mix = mix(args, &seen).map_err(wrong)?;
    let k = mix.messages_per_op(packets(args).check().map_err(wrong)?);
    let mut page = Page::new("sensitivity", Some(&args.file));
    page.line(format_args!("from {}", seen.model));
    base(&seen, base_per_latency(args.round_trips), &mut page);
    let now_per_s = saturation(&seen, k, &mut page).map_err(wrong)?;
    gap(&mix, args.rate.unwrap_or(now_per_s), &mut page);
    Ok(page)
}

fn mix(args: &Args, seen: &Seen) -> Result<Mix, ModelError> {
    let data = u32::try_from(args.data.unwrap_or(seen.data_bytes)).unwrap_or(u32::MAX);
    Mix::of_data(f64::from(args.reads) / 100.0, f64::from(args.writes) / 100.0, data)
}

/// The bandwidth that the mix fills at a rate.
fn gap(mix: &Mix, per_s: f64, page: &mut Page) {
    // us per KiB to bits a second.
    let mbit = 8192.0 / gap_threshold_us_per_kib(mix, per_s);
    page.line(format_args!(
        "\nG threshold     {mbit:.1} Mbit/s ({:.2} MB/s): with less, {per_s:.0} calls a second of \
         this mix fill the link",
        mbit / 8.0
    ));
    page.record.metric("gap_threshold_mbit_per_s", mbit, "Mbit/s");
}

fn packets(args: &Args) -> Packets {
    match (args.mtu, args.tcp) {
        (None, _) => Packets::Whole,
        (Some(mtu_bytes), true) => Packets::Tcp { mtu_bytes },
        (Some(mtu_bytes), false) => Packets::Udp { mtu_bytes },
    }
}

fn base(seen: &Seen, slope: f64, page: &mut Page) {
    let base = span(seen.base_us);
    page.line(format_args!(
        "d(base)/dL      {slope:.2}: each us of L one way adds so many to {base}"
    ));
    page.record.metric("base_us", seen.base_us, "us");
    page.record.metric("d_base_d_latency", slope, "1");
}

/// The saturation over an o that is added to each message; gives what it is without one.
fn saturation(seen: &Seen, k: f64, page: &mut Page) -> Result<f64, ModelError> {
    let Seen { service_us, servers, other_per_s, .. } = *seen;
    let of_o = format!("{servers} / ({} + {k:.2} o)", span(service_us));
    let formula = match other_per_s.is_finite() {
        // What is no processor limits until o is large.
        true => format!("the smaller of {other_per_s:.1}/s and {of_o}"),
        false => of_o,
    };
    page.line(format_args!("saturation(o)   {formula}\n"));
    page.record.metric("messages_per_op", k, "1");
    let per_s =
        |added_us: f64| Ok(saturation_per_s(service_us, servers, k, added_us)?.min(other_per_s));
    let now_per_s = per_s(0.0)?;
    let mut table = Table::new(["o added", "calls/s", "of now"].map(right));
    for added_us in ADDED_US {
        let per_s = per_s(added_us)?;
        let percent = 100.0 * per_s / now_per_s;
        table.row([span(added_us), format!("{per_s:.1}"), format!("{percent:.0} %")]);
        page.record.metric(&format!("saturation_per_s/o+{added_us}us"), per_s, "1/s");
    }
    page.table(&table);
    Ok(now_per_s)
}

fn seen(args: &Args) -> Result<Seen, Failure> {
    let path = &args.file;
    let source = Source::read(path, "sensitivity", args.of.as_deref())?;
    source.check_known(&args.known)?;
    Ok(match source {
        Source::Curve(curve, facts) => {
            let inferred = infer::infer(&curve, path, &args.known.or_before(&facts))?;
            of_curve(&inferred.server, curve.points()[0].per_s)
        }
        Source::Sweep(observed) => of_sweep(&fit::sweep(&observed, path)?.0),
        Source::Trace(transactions) => {
            let explained = fit::trace::explained(&transactions, path)?;
            let [now, _] = whatif::of_trace::answer(&explained, None, &[])
                .map_err(|error| super::page::unreadable(path, "sensitivity", &error))?;
            of_trace(&now.case)
        }
        Source::Path(saved, _) => of_path(&saved),
    })
}

fn of_curve(server: &FileServer, first_per_s: f64) -> Seen {
    let (saturation_per_s, bottleneck) = server.saturation();
    let is_disks = bottleneck == Bottleneck::Disks;
    Seen {
        model: "a curve: the processor's S, the disks beside it",
        base_us: server.response_us(first_per_s.min(0.9 * saturation_per_s)).unwrap_or(f64::NAN),
        service_us: server.cpu.service_us(),
        servers: server.cpu.servers(),
        other_per_s: if is_disks { saturation_per_s } else { f64::INFINITY },
        ..Seen::ONE
    }
}

fn of_sweep(explained: &sweep::Explained) -> Seen {
    let value = |name| explained.fitted.value(name).unwrap_or(f64::NAN);
    let model = "a sweep: T of one call, S of its slowest stage";
    Seen { model, base_us: value("cycle"), service_us: value("stage"), ..Seen::ONE }
}

fn of_trace(case: &whatif::of_trace::TraceCase) -> Seen {
    let (service_us, servers) = (case.demand_us(), case.servers);
    let model = "a trace: network round trip and demand of its average call";
    Seen { model, base_us: case.way_us + service_us, service_us, servers, ..Seen::ONE }
}

/// Of a probe: the stage that is full first takes the o of a call and its reply.
fn of_path(saved: &SavedPath) -> Seen {
    let case = saved.case();
    let full = Transfer { outstanding: u32::MAX, ..case.transfer };
    let without = Path { overhead_us: 0.0, ..case.path };
    let mib = case.transfer.call_bytes as f64 / f64::from(1 << 20);
    let per_s = without.predict(case.server, &full).mib_per_s / mib;
    let stage_us = case.path.capacity.call_of_us(case.transfer.call_bytes as f64);
    Seen {
        model: "a probe: the cycle of its WRITEs, the pipe's time for one",
        base_us: case.formula().cycle.total_us(),
        service_us: stage_us.max(f64::MIN_POSITIVE),
        other_per_s: per_s,
        data_bytes: case.transfer.call_bytes,
        ..Seen::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_names_what_limits_where_it_is_not_the_processor() {
        let printed = |other_per_s| {
            let seen = Seen { service_us: 130.0, other_per_s, ..Seen::ONE };
            let mut page = Page::new("sensitivity", None);
            saturation(&seen, 2.0, &mut page).unwrap();
            page.text
        };
        let disks = printed(4_807.9);
        let formula = "saturation(o)   the smaller of 4807.9/s and 1 / (130";
        assert!(disks.contains(formula) && disks.contains("4807.9"), "{disks}");
        let processor = printed(f64::INFINITY);
        assert!(processor.contains("saturation(o)   1 / (130"), "{processor}");
        assert!(processor.contains("7692.3"), "{processor}");
    }
}
