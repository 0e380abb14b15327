//! NFS version 4: its operations and callbacks by number (RFC 7531 for 4.0, RFC 5662 for 4.1, RFC
//! 7863 for 4.2, RFC 8276 for extended attributes), and what a COMPOUND is for.
//!
//! [`compound`] reads COMPOUNDs of which only a part may be there; it needs the length of each
//! operation's arguments to find the next: `arguments.rs`.

mod arguments;
pub mod compound;

use crate::xdr::macros::xdr_enum;

pub const VERSION: u32 = 4;
/// Most bytes in a file handle (NFS4_FHSIZE).
pub const HANDLE_LEN_MAX: usize = 128;
/// Most bytes in a name, an owner or the name of a client that are read (NFS4_OPAQUE_LIMIT).
pub const NAME_LEN_MAX: usize = 1024;
/// Where version 4 calls back to: the transient programs that clients choose (RFC 5531 section
/// 8.3).
pub const CALLBACK_PROGRAMS: std::ops::RangeInclusive<u32> = 0x4000_0000..=0x5fff_ffff;

xdr_enum! {
    /// The operations of a COMPOUND, in the order of their numbers.
    pub enum Operation {
        Access = 3 "ACCESS",
        Close = 4 "CLOSE",
        Commit = 5 "COMMIT",
        Create = 6 "CREATE",
        Delegpurge = 7 "DELEGPURGE",
        Delegreturn = 8 "DELEGRETURN",
        Getattr = 9 "GETATTR",
        Getfh = 10 "GETFH",
        Link = 11 "LINK",
        Lock = 12 "LOCK",
        Lockt = 13 "LOCKT",
        Locku = 14 "LOCKU",
        Lookup = 15 "LOOKUP",
        Lookupp = 16 "LOOKUPP",
        Nverify = 17 "NVERIFY",
        Open = 18 "OPEN",
        Openattr = 19 "OPENATTR",
        OpenConfirm = 20 "OPEN_CONFIRM",
        OpenDowngrade = 21 "OPEN_DOWNGRADE",
        Putfh = 22 "PUTFH",
        Putpubfh = 23 "PUTPUBFH",
        Putrootfh = 24 "PUTROOTFH",
        Read = 25 "READ",
        Readdir = 26 "READDIR",
        Readlink = 27 "READLINK",
        Remove = 28 "REMOVE",
        Rename = 29 "RENAME",
        Renew = 30 "RENEW",
        Restorefh = 31 "RESTOREFH",
        Savefh = 32 "SAVEFH",
        Secinfo = 33 "SECINFO",
        Setattr = 34 "SETATTR",
        Setclientid = 35 "SETCLIENTID",
        SetclientidConfirm = 36 "SETCLIENTID_CONFIRM",
        Verify = 37 "VERIFY",
        Write = 38 "WRITE",
        ReleaseLockowner = 39 "RELEASE_LOCKOWNER",
        BackchannelCtl = 40 "BACKCHANNEL_CTL",
        BindConnToSession = 41 "BIND_CONN_TO_SESSION",
        ExchangeId = 42 "EXCHANGE_ID",
        CreateSession = 43 "CREATE_SESSION",
        DestroySession = 44 "DESTROY_SESSION",
        FreeStateid = 45 "FREE_STATEID",
        GetDirDelegation = 46 "GET_DIR_DELEGATION",
        Getdeviceinfo = 47 "GETDEVICEINFO",
        Getdevicelist = 48 "GETDEVICELIST",
        Layoutcommit = 49 "LAYOUTCOMMIT",
        Layoutget = 50 "LAYOUTGET",
        Layoutreturn = 51 "LAYOUTRETURN",
        SecinfoNoName = 52 "SECINFO_NO_NAME",
        Sequence = 53 "SEQUENCE",
        SetSsv = 54 "SET_SSV",
        TestStateid = 55 "TEST_STATEID",
        WantDelegation = 56 "WANT_DELEGATION",
        DestroyClientid = 57 "DESTROY_CLIENTID",
        ReclaimComplete = 58 "RECLAIM_COMPLETE",
        Allocate = 59 "ALLOCATE",
        Copy = 60 "COPY",
        CopyNotify = 61 "COPY_NOTIFY",
        Deallocate = 62 "DEALLOCATE",
        IoAdvise = 63 "IO_ADVISE",
        Layouterror = 64 "LAYOUTERROR",
        Layoutstats = 65 "LAYOUTSTATS",
        OffloadCancel = 66 "OFFLOAD_CANCEL",
        OffloadStatus = 67 "OFFLOAD_STATUS",
        ReadPlus = 68 "READ_PLUS",
        Seek = 69 "SEEK",
        WriteSame = 70 "WRITE_SAME",
        Clone = 71 "CLONE",
        Getxattr = 72 "GETXATTR",
        Setxattr = 73 "SETXATTR",
        Listxattrs = 74 "LISTXATTRS",
        Removexattr = 75 "REMOVEXATTR",
        Illegal = 10044 "ILLEGAL",
    }
}

xdr_enum! {
    /// The operations of a CB_COMPOUND, in the order of their numbers.
    pub enum Callback {
        Getattr = 3 "CB_GETATTR",
        Recall = 4 "CB_RECALL",
        Layoutrecall = 5 "CB_LAYOUTRECALL",
        Notify = 6 "CB_NOTIFY",
        PushDeleg = 7 "CB_PUSH_DELEG",
        RecallAny = 8 "CB_RECALL_ANY",
        RecallableObjAvail = 9 "CB_RECALLABLE_OBJ_AVAIL",
        RecallSlot = 10 "CB_RECALL_SLOT",
        Sequence = 11 "CB_SEQUENCE",
        WantsCancelled = 12 "CB_WANTS_CANCELLED",
        NotifyLock = 13 "CB_NOTIFY_LOCK",
        NotifyDeviceid = 14 "CB_NOTIFY_DEVICEID",
        Offload = 15 "CB_OFFLOAD",
    }
}
