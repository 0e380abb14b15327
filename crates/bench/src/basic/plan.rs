//! What is to be done, by the arguments.

use harness::exit::Failure;
use load::basic::{Mode, Plan, Test};

use crate::basic::args::Basic;

/// Files and directories of a tree, at most.
const TREE_MAX: u64 = 10_000_000;

/// The plan, if its numbers fit together.
pub(super) fn of(args: &Basic) -> Result<Plan, Failure> {
    let is_requested = |test: &Test| {
        let number = u32::try_from(test.number()).unwrap_or(0);
        args.test.is_empty() || args.test.contains(&number)
    };
    let plan = Plan {
        tests: Test::ALL.into_iter().filter(is_requested).collect(),
        mode: if args.functional { Mode::Functional } else { Mode::Timed },
        levels: args.levels,
        files: args.files,
        dirs: args.dirs,
        count: args.count,
        file_bytes: args.size,
        sync: args.sync,
        in_place: args.no_directory,
        ignore_others: args.ignore_others,
        keep_going: args.keep_going,
    };
    fits(&plan)?;
    Ok(plan)
}

fn fits(plan: &Plan) -> Result<(), Failure> {
    let tree = plan.sizes(Test::Create);
    if tree.dirs == 0 && tree.levels != 1 {
        let what = format!("a tree of {} levels has directories", tree.levels);
        return Err(Failure::usage(what, "--dirs 1 or more, or --levels 1"));
    }
    let has_tree = plan.tests.iter().any(|test| matches!(test, Test::Create | Test::Remove));
    let objects = plan.tree().and_then(|(files, dirs)| files.checked_add(dirs));
    if has_tree && objects.is_none_or(|objects| objects > TREE_MAX) {
        let what = format!("the tree has more than {TREE_MAX} files and directories");
        return Err(Failure::usage(what, "smaller --levels, --files or --dirs"));
    }
    let listed = plan.sizes(Test::Readdir);
    if plan.tests.contains(&Test::Readdir) && listed.count > listed.files {
        let what = format!(
            "test 6 removes a file after each pass: {} files, and {} passes",
            listed.files, listed.count
        );
        return Err(Failure::usage(what, "a larger --files, a smaller --count, or other tests"));
    }
    let is_idle = |test: &&Test| plan.sizes(**test).files == 0;
    match plan
        .tests
        .iter()
        .filter(|test| !matches!(test, Test::Create | Test::Remove))
        .find(is_idle)
    {
        Some(test) => {
            let what = format!("test {} works on files, and there are none", test.number());
            Err(Failure::usage(what, "--files 1 or more"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_together_are_refused() {
        assert!(fits(&Plan::default()).is_ok());
        let refused = |plan: Plan| assert!(fits(&plan).is_err(), "{plan:?}");
        refused(Plan { dirs: Some(0), ..Plan::default() });
        refused(Plan { levels: Some(40), ..Plan::default() });
        refused(Plan { files: Some(100), ..Plan::default() });
        refused(Plan { files: Some(0), tests: vec![Test::Rename], ..Plan::default() });
        let flat = Plan { dirs: Some(0), levels: Some(1), ..Plan::default() };
        assert!(fits(&flat).is_ok());
        let others = Plan { count: Some(5000), tests: vec![Test::Statfs], ..Plan::default() };
        assert!(fits(&others).is_ok());
    }
}
