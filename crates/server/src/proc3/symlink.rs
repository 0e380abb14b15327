//! SYMLINK (RFC 1813 section 3.3.10).

use wire::nfs3::Procedure::Symlink;
use wire::nfs3::symlink::{Args, Reply};

use crate::store::Store;
use crate::types::{SetAttr, Status};

use super::attributes::set_attr;
use super::{Context, name};

/// Most bytes in a path: Linux's PATH_MAX without its NUL.
const TARGET_LEN_MAX: usize = 4095;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.where_.dir)?;
    let target = args.symlink_data;
    let made = match check(cx, &args) {
        Ok((name, attrs)) => cx.store.symlink(cx.caller, &dir, name, target, attrs).await,
        Err(status) => cx.unchanged(&dir, status).await,
    };
    cx.new_object(Symlink, made)
}

fn check<'a, S: Store>(
    cx: &Context<'_, S>,
    args: &Args<'a>,
) -> Result<(&'a [u8], SetAttr), Status> {
    cx.check_writable()?;
    check_target(args.symlink_data)?;
    let name = name::to_make(args.where_.name)?;
    Ok((name, set_attr(&args.symlink_attributes)?.of_new(cx.caller)))
}

/// A target may point anywhere, but it must be a path that a client can follow.
pub(crate) fn check_target(target: &[u8]) -> Result<(), Status> {
    match target {
        [] => Err(Status::Invalid),
        target if target.contains(&0) => Err(Status::Invalid),
        target if target.len() > TARGET_LEN_MAX => Err(Status::NameTooLong),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_paths() {
        assert_eq!(check_target(b"../a"), Ok(()));
        assert_eq!(check_target(&[b'a'; 4095]), Ok(()));
        assert_eq!(check_target(&[b'a'; 4096]), Err(Status::NameTooLong));
        assert_eq!(check_target(b""), Err(Status::Invalid));
        assert_eq!(check_target(b"a\0b"), Err(Status::Invalid));
    }
}
