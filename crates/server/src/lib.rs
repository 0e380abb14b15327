//! NFS server engine and stores; no sockets, no clock.
