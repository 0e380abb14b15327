//! Who calls: from the credential of a call to the [`Caller`] the store sees.

use std::borrow::Cow;

use wire::rpc::{AUTH_NONE, AUTH_SHORT, AUTH_SYS, AuthStat, AuthSys, OpaqueAuth};
use wire::xdr;

use crate::export::{Rule, Squash};
use crate::types::Caller;

/// A credential that could be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credential {
    Nobody,
    Sys { ids: Ids },
}

/// The part of AUTH_SYS that matters, without an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    uid: u32,
    gid: u32,
    gids: wire::rpc::Gids,
}

impl Credential {
    /// Reads the credential of a call.
    ///
    /// # Errors
    /// What RFC 5531 section 9 has for it: a malformed AUTH_SYS and a flavor that is not known are
    /// bad; an AUTH_SHORT names a session that we never began and is rejected, so that the client
    /// begins anew.
    pub(crate) fn of(credential: &OpaqueAuth<'_>) -> Result<Self, AuthStat> {
        match credential.flavor {
            AUTH_NONE => Ok(Self::Nobody),
            AUTH_SYS => {
                let sys: AuthSys<'_> =
                    xdr::from_bytes(credential.body).map_err(|_| AuthStat::BadCred)?;
                let AuthSys { uid, gid, gids, .. } = sys;
                let ids = Ids { uid, gid, gids };
                Ok(Self::Sys { ids })
            }
            AUTH_SHORT => Err(AuthStat::RejectedCred),
            _ => Err(AuthStat::BadCred),
        }
    }

    /// Whether the rule wants to know who calls, and this does not say.
    pub(crate) fn is_weak_for(self, rule: &Rule) -> bool {
        matches!(self, Self::Nobody) && !rule.anonymous_allowed
    }

    /// Who says to call, squashed or not; nobody is everyone's last number.
    pub(crate) fn stated_uid(self) -> u32 {
        match self {
            Self::Nobody => u32::MAX,
            Self::Sys { ids } => ids.uid,
        }
    }

    /// On whose behalf the call runs, after squashing.
    pub(crate) fn caller<'e>(self, rule: &'e Rule) -> Cow<'e, Caller> {
        match self.unsquashed(rule) {
            Some(ids) => Cow::Owned(Caller {
                uid: ids.uid,
                gid: group(rule, ids.gid),
                gids: ids.gids.as_slice().iter().map(|&gid| group(rule, gid)).collect(),
            }),
            None => Cow::Borrowed(rule.anonymous.as_ref()),
        }
    }

    /// [`Self::caller`] without supplementary groups, which costs no allocation: for GETATTR,
    /// which asks for no permission.
    pub(crate) fn caller_without_groups<'e>(self, rule: &'e Rule) -> Cow<'e, Caller> {
        match self.unsquashed(rule) {
            Some(ids) => {
                let gid = group(rule, ids.gid);
                Cow::Owned(Caller { uid: ids.uid, gid, gids: Vec::new() })
            }
            None => Cow::Borrowed(rule.anonymous.as_ref()),
        }
    }

    /// The ids the call runs with, unless it is the anonymous caller's.
    fn unsquashed(self, rule: &Rule) -> Option<Ids> {
        match (self, rule.squash) {
            (Self::Nobody, _) | (_, Squash::All) => None,
            (Self::Sys { ids }, Squash::Root) if ids.uid == 0 => None,
            (Self::Sys { ids }, Squash::Root | Squash::None) => Some(ids),
        }
    }
}

/// The group of root is squashed with root, whoever says to be in it.
fn group(rule: &Rule, gid: u32) -> u32 {
    match rule.squash {
        Squash::Root if gid == 0 => rule.anonymous.gid,
        _ => gid,
    }
}

#[cfg(test)]
mod tests {
    use wire::rpc::{Gids, RPCSEC_GSS};
    use wire::xdr::Encode;

    use super::*;

    fn sys(uid: u32) -> Vec<u8> {
        let gids = Gids::new(&[4, 24]).unwrap();
        AuthSys { stamp: 1, machine_name: b"client", uid, gid: 100, gids }.to_bytes()
    }

    fn rule(squash: Squash) -> Rule {
        Rule { squash, ..Rule::default() }
    }

    #[test]
    fn squashing_replaces_whom_it_should() {
        let uid = |uid, squash| {
            let body = sys(uid);
            let credential = Credential::of(&OpaqueAuth::sys(&body)).unwrap();
            credential.caller(&rule(squash)).uid
        };
        let nobody = Rule::default().anonymous.uid;
        assert_eq!((uid(0, Squash::None), uid(5, Squash::None)), (0, 5));
        assert_eq!((uid(0, Squash::Root), uid(5, Squash::Root)), (nobody, 5));
        assert_eq!((uid(0, Squash::All), uid(5, Squash::All)), (nobody, nobody));
    }

    #[test]
    fn the_group_of_root_is_squashed_with_root() {
        let gids = Gids::new(&[4, 0]).unwrap();
        let ids = AuthSys { stamp: 1, machine_name: b"client", uid: 5, gid: 0, gids };
        let body = ids.to_bytes();
        let credential = Credential::of(&OpaqueAuth::sys(&body)).unwrap();
        let nobody = Rule::default().anonymous.gid;
        for rule in [rule(Squash::Root), rule(Squash::None)] {
            let group = if rule.squash == Squash::Root { nobody } else { 0 };
            let caller = credential.caller(&rule).into_owned();
            assert_eq!((caller.uid, caller.gid, caller.gids), (5, group, vec![4, group]));
            assert_eq!(credential.caller_without_groups(&rule).gid, group);
        }
    }

    #[test]
    fn groups_come_along_and_nobody_has_none() {
        let body = sys(5);
        let credential = Credential::of(&OpaqueAuth::sys(&body)).unwrap();
        let rule = rule(Squash::None);
        let caller = credential.caller(&rule).into_owned();
        assert_eq!((caller.gid, caller.gids), (100, vec![4, 24]));
        let nobody = Credential::of(&OpaqueAuth::NONE).unwrap();
        assert_eq!(*nobody.caller(&rule), *rule.anonymous);
    }

    #[test]
    fn what_cannot_be_read_is_refused_for_the_right_reason() {
        let body = sys(5);
        let refused = |flavor, body| {
            let credential = OpaqueAuth { flavor, body };
            Credential::of(&credential).unwrap_err()
        };
        assert_eq!(refused(AUTH_SYS, &body[..20]), AuthStat::BadCred);
        let longer = [&body[..], &[0; 4]].concat();
        assert_eq!(refused(AUTH_SYS, &longer), AuthStat::BadCred);
        assert_eq!(refused(AUTH_SHORT, &body), AuthStat::RejectedCred);
        assert_eq!(refused(RPCSEC_GSS, &body), AuthStat::BadCred);
        assert_eq!(refused(3, &[]), AuthStat::BadCred);
    }
}
