//! A change of a sweep of outstanding calls: by both of its forms, and by a world.

use harness::exit::Failure;
use harness::table::{Table, left, right};
use perf::model::sweep::{Explained, SweepPoint};
use perf::model::whatif::Change;
use perf::model::whatif::of_sweep::{SweepPrediction, answer, changed};

use super::text::no_simulation;
use super::text::{refused, whole, with_interval};
use crate::model::args::estimate::WhatIf;
use crate::model::fit;
use crate::model::page::Page;
use crate::model::worlds::Stage;

pub(super) fn page(args: &WhatIf, observed: &[SweepPoint]) -> Result<Page, Failure> {
    let (best, other) = fit::sweep(observed, &args.file)?;
    let outstanding = args.outstanding.unwrap_or(1);
    let mut page = Page::new("whatif", Some(&args.file));
    let names = [right("outstanding"), left("calls/s"), left("saturation")];
    let mut table = Table::new([left(""), left("")].into_iter().chain(names));
    for explained in [Some(&best), other.as_ref()].into_iter().flatten() {
        let form = fit::name(explained.form);
        let answers = answer(explained, outstanding, &args.changes).map_err(refused)?;
        for (when, prediction) in ["before", "after"].into_iter().zip(&answers) {
            // The better form decides whether a stage shows at all.
            let saturation_per_s = prediction.saturation_per_s.filter(|_| best.shows_stage);
            let prediction = &SweepPrediction { saturation_per_s, ..*prediction };
            table.row(row(form, when, prediction));
            let n = observed.len() as u64;
            page.record.estimate(&format!("{form}/{when}/per_s"), &prediction.per_s, "1/s", n);
        }
    }
    simulated(&best, outstanding, &args.changes, &mut table, &mut page)?;
    if !best.shows_stage {
        let note = format!(
            "no saturation shows up to {} calls outstanding: with more, the calls/s are those of a \
             server without any, and so the most that there can be",
            best.most
        );
        page.note("beyond-the-sweep", &note, "runs with more calls outstanding");
    }
    page.text.insert_str(0, &table.text());
    page.falls(&best);
    page.systematic(&best.fitted);
    page.unidentified(best.unidentified());
    Ok(page)
}

/// The same in a world: one server of S, a way of what T has besides, a client that takes o.
fn simulated(
    best: &Explained,
    outstanding: u32,
    changes: &[Change],
    table: &mut Table,
    page: &mut Page,
) -> Result<(), Failure> {
    for (when, changes) in [("before", &[][..]), ("after", changes)] {
        let (values, calls) =
            changed(&best.fitted.values(), outstanding, changes).map_err(refused)?;
        if !best.shows_stage && calls > best.most {
            no_simulation(page, when, "the sweep shows no stage, beyond which calls would wait");
            continue;
        }
        match Stage::of_sweep(&values, calls).per_s() {
            Ok(per_s) => {
                table.row(["simulation", when, &calls.to_string(), &whole(per_s)]);
                page.record.metric(&format!("simulation/{when}/per_s"), per_s, "1/s");
            }
            Err(why) => no_simulation(page, when, &why),
        }
    }
    Ok(())
}

fn row(form: &str, when: &str, prediction: &SweepPrediction) -> [String; 5] {
    let SweepPrediction { outstanding, per_s, saturation_per_s, is_full } = prediction;
    let rate = with_interval(per_s, whole);
    let by = if *is_full { "the stage" } else { "the window" };
    let saturation = match saturation_per_s {
        Some(per_s) => format!("{per_s:.0}, bound by {by}"),
        None => "none shows".to_owned(),
    };
    [form.to_owned(), when.to_owned(), outstanding.to_string(), rate, saturation]
}
