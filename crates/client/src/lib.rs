//! NFS client: mount, typed procedures, windowed transfers.
