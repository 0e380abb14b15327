//! NFS-Ganesha on the loopback, with a portmapper of its own.
//!
//! It serves NFS versions 3 and 4 from one folder, version 3 over UDP, too. Locks and quotas are
//! off, ports are free ones, and all that it writes goes to the scratch folder.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use super::child::Service;
use super::nfskit::{Address, START_WITHIN, STOP_WITHIN};
use super::tools;

const PORTMAPPER: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 111);

/// A running Ganesha. Fields drop in their order: it unregisters from the portmapper at its end.
#[derive(Debug)]
pub(crate) struct Ganesha {
    service: Service,
    portmapper: Service,
    pub(crate) address: Address,
}

/// Whether what it needs is installed.
pub(crate) fn programs() -> Result<(), String> {
    tools::find("ganesha.nfsd", "nfs-ganesha")?;
    tools::find_ganesha_backend("libfsalvfs.so", "nfs-ganesha-vfs")?;
    tools::find("rpcbind", "rpcbind")?;
    Ok(())
}

/// What keeps Ganesha from running here at all, so that its checks are skipped.
pub(crate) fn obstacle() -> Result<(), String> {
    programs()?;
    if !rustix::process::geteuid().is_root() {
        return Err("Ganesha opens files by handle, which needs root".to_owned());
    }
    if TcpStream::connect(PORTMAPPER).is_ok() {
        return Err("this machine's portmapper would see Ganesha's ports; \
                    stop it, or run where network namespaces are allowed"
            .to_owned());
    }
    Ok(())
}

impl Ganesha {
    /// Serves `export` as `/export`; its files other than those are under `scratch`.
    pub(crate) fn start(scratch: &Path, export: &Path) -> Result<Self, String> {
        let home = scratch.join("ganesha");
        let failed = |error: std::io::Error| format!("Ganesha's files: {error}");
        std::fs::create_dir_all(&home).map_err(failed)?;
        let [nfs_port, mount_port, quota_port] = free_ports().map_err(failed)?;
        let configuration = home.join("ganesha.conf");
        let text = configuration_text(&home, export, [nfs_port, mount_port, quota_port]);
        std::fs::write(&configuration, text).map_err(failed)?;

        let mut portmapper =
            Service::start(Command::new(tools::find("rpcbind", "rpcbind")?).arg("-f"))?;
        portmapper.wait_for(START_WITHIN, |_| TcpStream::connect(PORTMAPPER).ok())?;

        let mut command = Command::new(tools::find("ganesha.nfsd", "nfs-ganesha")?);
        command.arg("-F").arg("-f").arg(configuration);
        command.args(["-L", "STDERR", "-N", "NIV_EVENT"]).arg("-p").arg(home.join("pid"));
        let mut service = Service::start(&mut command)?;
        let is_up = |lines: &[String]| {
            let initialized = lines.iter().any(|line| line.contains("NFS SERVER INITIALIZED"));
            let connects = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            (initialized && connects(nfs_port) && connects(mount_port)).then_some(())
        };
        service.wait_for(START_WITHIN, is_up)?;
        Ok(Self {
            service,
            portmapper,
            address: Address { export: "/export", nfs_port, mount_port },
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.service.pid()
    }

    pub(crate) fn stop(self) -> Result<(), String> {
        self.service.stop(STOP_WITHIN)?;
        self.portmapper.stop(STOP_WITHIN)
    }
}

/// Ports that were free a moment ago. In our namespaces nobody else can take them.
fn free_ports() -> std::io::Result<[u16; 3]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = [listen()?, listen()?, listen()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// Ganesha's own syntax. It does not bind to the loopback's address alone, because it looks that
/// address up in a way that fails on a machine, or in a namespace, that has no other.
fn configuration_text(home: &Path, export: &Path, ports: [u16; 3]) -> String {
    let [nfs, mount, quota] = ports;
    let (home, export) = (home.display(), export.display());
    format!(
        "NFS_CORE_PARAM {{ Protocols = 3, 4; Enable_UDP = true; Enable_NLM = false;\n  \
           NFS_Port = {nfs}; MNT_Port = {mount}; Rquota_Port = {quota};\n  \
           mount_path_pseudo = true; allow_set_io_flusher_fail = true; }}\n\
         NFSV4 {{ Graceless = true; RecoveryRoot = \"{home}/recovery\"; }}\n\
         EXPORT_DEFAULTS {{ SecType = sys; Squash = No_Root_Squash; Access_Type = RW;\n  \
           Protocols = 3, 4; Transports = TCP, UDP; }}\n\
         EXPORT {{ Export_Id = 1; Path = \"{export}\"; Pseudo = /export;\n  \
           FSAL {{ Name = VFS; }} }}\n\
         LOG {{ Default_Log_Level = EVENT; }}\n"
    )
}
