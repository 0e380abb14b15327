//! What is exported: of one store or of many directories, and again when it has changed.

use std::path::PathBuf;

use harness::exit::Failure;
use harness::exports::{RuleSpec, Spec, file, resolve};
use harness::unservable::Unservable;
use net::clock::Clock;
use server::Export;

use crate::args::Serve;

/// What is to be exported.
pub(super) fn specs(args: &Serve) -> Result<Vec<Spec>, Failure> {
    match &args.store {
        Some(store) => Ok(vec![named(args, store)?]),
        None => Ok(specs_again(args).map_err(Unservable::Exports)?),
    }
}

/// The same, when it changes while the server runs.
pub(super) fn specs_again(args: &Serve) -> Result<Vec<Spec>, String> {
    if let Some(store) = &args.store {
        return Ok(vec![named(args, store).map_err(|_| "one store has one name".to_owned())?]);
    }
    let mut specs: Vec<Spec> =
        args.export.iter().map(|export| export.directory()).collect::<Result<_, _>>()?;
    if let Some(file) = &args.exports {
        specs.extend(file::read(file)?);
    }
    for spec in &mut specs {
        spec.rule.read_only |= args.ro;
    }
    Ok(specs)
}

/// The export of a store that is served alone.
pub(super) async fn export(clock: &Clock, spec: &Spec) -> Result<Export, Failure> {
    let rule = resolve::rule(clock, &spec.rule, None).await.map_err(Unservable::Exports)?;
    let id = spec.id.unwrap_or_else(|| Export::id_of(&spec.name));
    Ok(Export { name: spec.name.clone(), id, rules: vec![rule] })
}

/// The one store that was named, under the name that was given.
pub(super) fn named(args: &Serve, store: &str) -> Result<Spec, Failure> {
    let rule = RuleSpec { read_only: args.ro, ..RuleSpec::default() };
    let path = PathBuf::from(store);
    let spec = match args.export.as_slice() {
        [] => Ok(Spec { path, name: "/".to_owned(), id: Some(1), rule }),
        [export] => export.name_of(path, rule),
        _ => Err("one store has one name: give --export once, or name no store".to_owned()),
    };
    spec.map_err(|why| Failure::usage(why, "nfskit serve --help"))
}
