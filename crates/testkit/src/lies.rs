//! Servers that answer what they should not: the replies of a real one, falsified.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::nfs3::{
    self, FileHandle, NfsStat3, Procedure, StableHow, commit, fsinfo, getattr, pathconf, read,
    readdir, readdirplus, write,
};
use wire::rpc::{CallHeader, ReplyHeader};
use wire::xdr::{Decode, Encode, List, Reader, from_bytes};

/// What the server answers falsely.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lie {
    /// Listings go round in a circle of two pages.
    CookiesRepeat,
    /// All entries of a page have one cookie.
    OneCookie,
    /// A page without entries that is not the last.
    EmptyPages,
    /// The same names behind ever new cookies.
    SameNames,
    /// Cookies of a listing are given up on its way, and the names have another order then.
    CookiesMove,
    /// FSINFO offers no READ.
    NoRtmax,
    /// FSINFO offers no WRITE.
    NoWtmax,
    /// FSINFO prefers listings of no bytes.
    NoDtpref,
    /// Every WRITE is unstable, whatever was requested, and every reply has another verifier.
    NeverStable,
    /// The verifier is another one with each reply; stable WRITEs are answered as such.
    NewVerifiers,
    /// READ gives nothing, and the file goes on.
    ReadsNothing,
    /// READ gives more than was requested.
    ReadsMore,
    /// WRITE takes nothing.
    WritesNothing,
    /// WRITE takes more than it was given.
    WritesMore,
    /// READ, WRITE, COMMIT and GETATTR are to be tried again later, for ever (JUKEBOX).
    AlwaysLater,
    /// No name may have any length, and no file a link.
    NoNames,
    /// Letters of both cases are one.
    FoldsCase,
}

impl Lie {
    pub const ALL: [Self; 17] = [
        Self::CookiesRepeat,
        Self::OneCookie,
        Self::EmptyPages,
        Self::SameNames,
        Self::CookiesMove,
        Self::NoRtmax,
        Self::NoWtmax,
        Self::NoDtpref,
        Self::NeverStable,
        Self::NewVerifiers,
        Self::ReadsNothing,
        Self::ReadsMore,
        Self::WritesNothing,
        Self::WritesMore,
        Self::AlwaysLater,
        Self::NoNames,
        Self::FoldsCase,
    ];
}

/// One server that lies; clones are the same one.
#[derive(Clone, Debug)]
pub struct Liar {
    lie: Lie,
    /// Numbers verifiers.
    replies: Arc<AtomicU64>,
}

impl Liar {
    pub fn new(lie: Lie) -> Self {
        Self { lie, replies: Arc::default() }
    }

    /// The reply to `call`, both whole records, as falsified.
    ///
    /// # Panics
    /// They are no call and no reply to it.
    pub fn retell(&self, call: &[u8], reply: Vec<u8>) -> Vec<u8> {
        let mut args = Reader::new(call);
        let header = CallHeader::decode(&mut args).expect("a call");
        let head = ReplyHeader::success(header.xid).to_bytes();
        let is_ours = (header.program, header.version) == (nfs3::PROGRAM, nfs3::VERSION);
        let Some(results) = reply.strip_prefix(&head[..]).filter(|_| is_ours) else {
            return reply;
        };
        let falsified = Procedure::from_code(header.procedure)
            .and_then(|procedure| self.results(procedure, &mut args, results));
        falsified.map_or_else(|| reply.clone(), |falsified| [head, falsified].concat())
    }

    /// Other results than the true ones; none where those are sent.
    fn results(
        &self,
        procedure: Procedure,
        args: &mut Reader<'_>,
        results: &[u8],
    ) -> Option<Vec<u8>> {
        match procedure {
            Procedure::Readdir => self.listing(readdir::Args::decode(args).ok()?.cookie, false),
            Procedure::Readdirplus => {
                self.listing(readdirplus::Args::decode(args).ok()?.cookie, true)
            }
            Procedure::Fsinfo => {
                let mut info = from_bytes::<fsinfo::Reply>(results).ok()?.ok()?;
                match self.lie {
                    Lie::NoRtmax => info.rtmax = 0,
                    Lie::NoWtmax => info.wtmax = 0,
                    Lie::NoDtpref => info.dtpref = 0,
                    _ => return None,
                }
                Some(fsinfo::Reply::Ok(info).to_bytes())
            }
            Procedure::Read => self.read(read::Args::decode(args).ok()?, results),
            Procedure::Write => self.written(results),
            Procedure::Commit => self.committed(results),
            Procedure::Getattr if self.lie == Lie::AlwaysLater => {
                Some(getattr::Reply::Err(NfsStat3::Jukebox.into()).to_bytes())
            }
            Procedure::Pathconf => {
                let mut limits = from_bytes::<pathconf::Reply>(results).ok()?.ok()?;
                match self.lie {
                    Lie::NoNames => (limits.name_max, limits.linkmax) = (0, 0),
                    Lie::FoldsCase => limits.case_insensitive = true,
                    _ => return None,
                }
                Some(pathconf::Reply::Ok(limits).to_bytes())
            }
            _ => None,
        }
    }

    fn read(&self, args: read::Args, results: &[u8]) -> Option<Vec<u8>> {
        let mut results = from_bytes::<read::Reply<'_>>(results).ok()?.ok()?;
        let mut more = results.data.to_vec();
        more.resize(args.count as usize + 4, 0);
        match self.lie {
            Lie::ReadsNothing => (results.data, results.eof) = (&[], false),
            Lie::ReadsMore => results.data = &more,
            Lie::AlwaysLater => {
                return Some(read::Reply::Err(NfsStat3::Jukebox.into()).to_bytes());
            }
            _ => return None,
        }
        results.count = u32::try_from(results.data.len()).ok()?;
        Some(read::Reply::Ok(results).to_bytes())
    }

    fn written(&self, results: &[u8]) -> Option<Vec<u8>> {
        let mut results = from_bytes::<write::Reply>(results).ok()?.ok()?;
        match self.lie {
            Lie::NeverStable => {
                (results.committed, results.verf) = (StableHow::Unstable, self.verifier());
            }
            Lie::NewVerifiers => results.verf = self.verifier(),
            Lie::WritesNothing => results.count = 0,
            Lie::WritesMore => results.count += 1,
            Lie::AlwaysLater => {
                return Some(write::Reply::Err(NfsStat3::Jukebox.into()).to_bytes());
            }
            _ => return None,
        }
        Some(write::Reply::Ok(results).to_bytes())
    }

    fn committed(&self, results: &[u8]) -> Option<Vec<u8>> {
        let mut results = from_bytes::<commit::Reply>(results).ok()?.ok()?;
        match self.lie {
            Lie::NeverStable | Lie::NewVerifiers => results.verf = self.verifier(),
            Lie::AlwaysLater => {
                return Some(commit::Reply::Err(NfsStat3::Jukebox.into()).to_bytes());
            }
            _ => return None,
        }
        Some(commit::Reply::Ok(results).to_bytes())
    }

    fn verifier(&self) -> [u8; 8] {
        self.replies.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }

    /// Three of 12 names, while the cookie is good: for three calls, then for five each.
    fn moved(&self, cookie: u64) -> Option<Vec<(String, u64)>> {
        let generation = (self.replies.fetch_add(1, Ordering::Relaxed) + 2) / 5;
        let begun = if cookie == 0 { generation * 100 } else { cookie };
        let is_even = generation.is_multiple_of(2);
        let place = |cookie: u64| if is_even { cookie } else { 13 - cookie };
        let page = (begun % 100 + 1..).take(3).filter(|at| *at <= 12);
        let name = |at| (format!("name-{}", place(at)), generation * 100 + at);
        (begun / 100 == generation).then(|| page.map(name).collect())
    }

    /// The page behind `cookie`.
    fn listing(&self, cookie: u64, plus: bool) -> Option<Vec<u8>> {
        let page: Vec<(String, u64)> = match self.lie {
            Lie::CookiesRepeat => {
                let first = if cookie == 3 { 4 } else { 1 };
                (first..first + 3).map(|cookie| (format!("name-{cookie}"), cookie)).collect()
            }
            Lie::OneCookie => (1..4).map(|number| (format!("name-{number}"), cookie + 7)).collect(),
            Lie::EmptyPages => Vec::new(),
            Lie::SameNames => {
                (1..4).map(|number| (format!("name-{number}"), cookie + number)).collect()
            }
            Lie::CookiesMove => match self.moved(cookie) {
                Some(page) => page,
                None if plus => {
                    return Some(readdirplus::Reply::Err(NfsStat3::BadCookie.into()).to_bytes());
                }
                None => return Some(readdir::Reply::Err(NfsStat3::BadCookie.into()).to_bytes()),
            },
            _ => return None,
        };
        let eof =
            self.lie == Lie::CookiesMove && page.last().is_some_and(|last| last.1 % 100 == 12);
        let (dir_attributes, cookieverf) = (None, [0; 8]);
        Some(if plus {
            let entries: List<_> = page
                .iter()
                .map(|(name, cookie)| readdirplus::Entry {
                    fileid: *cookie,
                    name: name.as_bytes(),
                    cookie: *cookie,
                    name_attributes: None,
                    name_handle: None::<FileHandle>,
                })
                .collect();
            let page = readdirplus::ReplyOk { dir_attributes, cookieverf, entries, eof };
            readdirplus::Reply::Ok(page).to_bytes()
        } else {
            let entries: List<_> = page
                .iter()
                .map(|(name, cookie)| readdir::Entry {
                    fileid: *cookie,
                    name: name.as_bytes(),
                    cookie: *cookie,
                })
                .collect();
            let page = readdir::ReplyOk { dir_attributes, cookieverf, entries, eof };
            readdir::Reply::Ok(page).to_bytes()
        })
    }
}
