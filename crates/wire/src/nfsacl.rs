//! NFSACL, by which Solaris and Linux ask for access control lists beside NFS: its procedures by
//! number.

use crate::xdr::macros::xdr_enum;

pub const PROGRAM: u32 = 100_227;

xdr_enum! {
    /// The procedures of versions 2 and 3.
    pub enum Procedure {
        Null = 0 "NULL",
        Getacl = 1 "GETACL",
        Setacl = 2 "SETACL",
        Getattr = 3 "GETATTR",
        Access = 4 "ACCESS",
        Getxattrdir = 5 "GETXATTRDIR",
    }
}
