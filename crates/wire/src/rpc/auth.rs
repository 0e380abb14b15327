//! Who calls: credentials and verifiers (RFC 5531 sections 8.2 and 9, appendix A).

use crate::xdr::macros::{xdr_failures, xdr_struct};
use crate::xdr::{Decode, DecodeError, DecodeErrorKind, Encode, Reader};

/// Flavor: nobody in particular.
pub const AUTH_NONE: u32 = 0;
/// Flavor: the caller states its Unix ids ([`AuthSys`]).
pub const AUTH_SYS: u32 = 1;
/// Flavor: a shorthand the server gave out earlier.
pub const AUTH_SHORT: u32 = 2;
/// Flavor: RFC 2203.
pub const RPCSEC_GSS: u32 = 6;

/// Most bytes in the body of a credential or verifier (RFC 5531 section 8.2).
pub const AUTH_BODY_LEN_MAX: usize = 400;
/// Most bytes in a machine name (RFC 5531 appendix A).
pub const MACHINE_NAME_LEN_MAX: usize = 255;
/// Most supplementary groups AUTH_SYS can carry (RFC 5531 appendix A).
pub const GIDS_MAX: usize = 16;

xdr_struct! {
    /// A credential or verifier whose meaning depends on its flavor.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct OpaqueAuth<'a> {
        pub flavor: u32,
        /// At most [`AUTH_BODY_LEN_MAX`] bytes.
        pub body: &'a [u8] where len <= AUTH_BODY_LEN_MAX,
    }
}

impl<'a> OpaqueAuth<'a> {
    /// AUTH_NONE, also the verifier that goes with AUTH_SYS.
    pub const NONE: OpaqueAuth<'static> = OpaqueAuth { flavor: AUTH_NONE, body: &[] };

    /// An AUTH_SYS credential with the bytes of an encoded [`AuthSys`].
    pub const fn sys(body: &'a [u8]) -> Self {
        Self { flavor: AUTH_SYS, body }
    }

    /// The ids in an AUTH_SYS credential; none for other flavors.
    ///
    /// # Errors
    /// When the flavor is AUTH_SYS and the body is malformed: answer AUTH_BADCRED.
    pub fn auth_sys(&self) -> Option<Result<AuthSys<'a>, DecodeError>> {
        (self.flavor == AUTH_SYS).then(|| AuthSys::decode(&mut Reader::new(self.body)))
    }
}

xdr_struct! {
    /// The body of an AUTH_SYS credential.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct AuthSys<'a> {
        /// An arbitrary number the caller makes up.
        pub stamp: u32,
        pub machine_name: &'a [u8] where len <= MACHINE_NAME_LEN_MAX,
        pub uid: u32,
        pub gid: u32,
        pub gids: Gids,
    }
}

/// Up to 16 supplementary group ids, inline.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Gids {
    count: usize,
    ids: [u32; GIDS_MAX], // zero from `count` on, so that equality can be derived
}

impl Gids {
    /// The groups; none when there are more than [`GIDS_MAX`].
    pub fn new(gids: &[u32]) -> Option<Self> {
        let mut ids = [0; GIDS_MAX];
        ids.get_mut(..gids.len())?.copy_from_slice(gids);
        let count = gids.len();
        Some(Self { count, ids })
    }

    pub fn as_slice(&self) -> &[u32] {
        &self.ids[..self.count]
    }
}

impl Encode for Gids {
    fn encode(&self, out: &mut Vec<u8>) {
        crate::xdr::put_len(out, self.count);
        for gid in self.as_slice() {
            gid.encode(out);
        }
    }
}

impl Decode<'_> for Gids {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = r.at();
        let count = r.u32()? as usize;
        if count > GIDS_MAX {
            let max = GIDS_MAX;
            return Err(DecodeErrorKind::TooMany { max, got: count }.at(at));
        }
        let mut ids = [0; GIDS_MAX];
        for id in &mut ids[..count] {
            *id = r.u32()?;
        }
        Ok(Self { count, ids })
    }
}

impl crate::show::Show for Gids {
    fn show(&self, name: &'static str, line: &mut crate::show::Line) {
        line.field(name, format_args!("{:?}", self.as_slice()));
    }
}

xdr_failures! {
    /// Why a credential was refused (RFC 5531, `auth_stat`).
    pub enum AuthStat {
        /// The credential is malformed.
        BadCred = 1 "AUTH_BADCRED",
        /// The caller has to begin a new session.
        RejectedCred = 2 "AUTH_REJECTEDCRED",
        BadVerf = 3 "AUTH_BADVERF",
        /// The verifier has expired or was replayed.
        RejectedVerf = 4 "AUTH_REJECTEDVERF",
        /// Refused for security reasons: this flavor is not enough here.
        TooWeak = 5 "AUTH_TOOWEAK",
        /// The caller does not accept the server's verifier.
        InvalidResp = 6 "AUTH_INVALIDRESP",
        Failed = 7 "AUTH_FAILED",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{bytes_of, golden};
    use crate::xdr::from_bytes;

    pub(crate) const BODY: &str = "
        00000007                     # stamp
        00000006 636c6965 6e740000   # machinename: client
        000003e8 00000064            # uid: 1000, gid: 100
        00000002 00000004 00000018   # gids: 4, 24
    ";

    fn body() -> AuthSys<'static> {
        AuthSys {
            stamp: 7,
            machine_name: b"client",
            uid: 1000,
            gid: 100,
            gids: Gids::new(&[4, 24]).unwrap(),
        }
    }

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(BODY, body());
        golden("00000000 00000000", OpaqueAuth::NONE);
        let credential = OpaqueAuth::sys(bytes_of(BODY));
        golden(&format!("00000001 00000024 {BODY}"), credential);
        assert_eq!(credential.auth_sys(), Some(Ok(body())));
        assert_eq!(OpaqueAuth::NONE.auth_sys(), None);
    }

    #[test]
    fn sixteen_groups_are_taken_and_seventeen_refused() {
        assert_eq!(Gids::new(&[0; GIDS_MAX + 1]), None);
        let most = Gids::new(&[9; GIDS_MAX]).unwrap();
        assert_eq!(from_bytes(&most.to_bytes()), Ok(most));
        let error = from_bytes::<Gids>(&[0, 0, 0, 17]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::TooMany { max: 16, got: 17 });
    }

    #[test]
    fn a_body_over_400_bytes_is_refused() {
        let body = [0; AUTH_BODY_LEN_MAX + 1];
        let long = |len| OpaqueAuth::sys(&body[..len]).to_bytes();
        assert!(from_bytes::<OpaqueAuth<'_>>(&long(AUTH_BODY_LEN_MAX)).is_ok());
        let error = from_bytes::<OpaqueAuth<'_>>(&long(AUTH_BODY_LEN_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "body at byte 4: 401 bytes, at most 400 are allowed");
    }
}
