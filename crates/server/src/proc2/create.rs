//! CREATE (RFC 1094 section 2.2.10), which makes special files too: practice of SunOS and
//! everybody since.
//!
//! | type in the mode | makes |
//! |---|---|
//! | none, regular | a regular file, or sets the size of one that is there and nothing else |
//! | character, block | a device, its number given as the size; without one, a named pipe |
//! | pipe, socket | that |
//! | directory, symbolic link, others | NFSERR_INVAL |

use wire::nfs2::Procedure::Create;
use wire::nfs2::create::{Args, Reply};
use wire::nfs2::{Sattr2, mode_type};

use crate::proc3::name;
use crate::store::{Node, Store};
use crate::types::{CreateHow, Handle, SetAttr, Special, Status};

use super::Context;
use super::attributes::{numbers, set_attr, wanted_type};

/// What is to be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wanted {
    File(SetAttr),
    Special(Special, SetAttr),
}

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args<'_>) -> Reply {
    let dir = cx.handle(&args.where_.dir)?;
    let made = match check(cx, &args) {
        Ok((name, wanted)) => make(cx, &dir, name, wanted).await,
        Err(status) => Err(cx.untouched(&dir, status).await),
    };
    cx.found(Create, made)
}

fn check<'a, S: Store>(cx: &Context<'_, S>, args: &Args<'a>) -> Result<(&'a [u8], Wanted), Status> {
    cx.check_writable()?;
    let name = name::to_make(args.where_.name)?;
    Ok((name, wanted(&args.attributes)?))
}

fn wanted(attributes: &Sattr2) -> Result<Wanted, Status> {
    let attrs = set_attr(attributes)?;
    let without_size = SetAttr { size: None, ..attrs };
    let special = |special| Ok(Wanted::Special(special, without_size));
    match (wanted_type(attributes), attributes.size.map(numbers)) {
        (mode_type::REG, _) => Ok(Wanted::File(attrs)),
        (mode_type::CHR, Some((major, minor))) => special(Special::CharDevice { major, minor }),
        (mode_type::BLK, Some((major, minor))) => special(Special::BlockDevice { major, minor }),
        (mode_type::CHR, None) | (mode_type::FIFO, _) => special(Special::Fifo),
        (mode_type::SOCK, _) => special(Special::Socket),
        _ => Err(Status::Invalid),
    }
}

async fn make<S: Store>(
    cx: &Context<'_, S>,
    dir: &Handle,
    name: &[u8],
    wanted: Wanted,
) -> Result<Node, Status> {
    match wanted {
        Wanted::File(attrs) => {
            let how = CreateHow::Unchecked(attrs.of_new(cx.caller));
            cx.store.create(cx.caller, dir, name, how).await.result
        }
        Wanted::Special(what, attrs) => {
            let attrs = attrs.of_new(cx.caller);
            cx.store.make_node(cx.caller, dir, name, what, attrs).await.result
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_says_what_is_made_and_the_size_which_device() {
        let wanted = |mode, size| {
            let sattr = Sattr2 { mode, size, ..Sattr2::default() };
            wanted(&sattr).map(|wanted| match wanted {
                Wanted::File(attrs) => (None, attrs.size),
                Wanted::Special(special, attrs) => (Some(special), attrs.size),
            })
        };
        let mode = |bits: u32| Some(bits | 0o644);
        assert_eq!(wanted(None, Some(5)), Ok((None, Some(5))));
        assert_eq!(wanted(mode(0), None), Ok((None, None)));
        assert_eq!(wanted(mode(mode_type::REG), Some(0)), Ok((None, Some(0))));
        let (major, minor) = (8, 1);
        let character = Special::CharDevice { major, minor };
        assert_eq!(wanted(mode(mode_type::CHR), Some(0x801)), Ok((Some(character), None)));
        let block = Special::BlockDevice { major, minor };
        assert_eq!(wanted(mode(mode_type::BLK), Some(0x801)), Ok((Some(block), None)));
        for (kind, size) in [(mode_type::CHR, None), (mode_type::FIFO, Some(3))] {
            assert_eq!(wanted(mode(kind), size), Ok((Some(Special::Fifo), None)));
        }
        assert_eq!(wanted(mode(mode_type::SOCK), None), Ok((Some(Special::Socket), None)));
        let refused = [(mode_type::DIR, None), (mode_type::LNK, None), (mode_type::BLK, None)];
        for (kind, size) in refused.into_iter().chain([(0o170_000, Some(0))]) {
            assert_eq!(wanted(mode(kind), size), Err(Status::Invalid));
        }
    }
}
