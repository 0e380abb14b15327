//! Bytes to messages and back: XDR, ONC RPC, portmap, MOUNT, NFS v3. Pure.
