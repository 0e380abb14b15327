//! What this host has counted, at one time: files of its kernel, and the connections of NFS.

use std::path::{Path, PathBuf};

use doctor::collect::{self, CONNECTIONS, COUNTERS, Files, SERVERS, SPACES, WAITS};
use rustix::fs::statvfs;

/// The counters, and the connections of NFS. Nothing is requested of mounts.
pub fn look(root: &Path) -> Files {
    let mut files = collect::live(root, &COUNTERS);
    match net::connections::established() {
        Ok(messages) => {
            let text = collect::connections(&messages);
            if !text.is_empty() {
                files.put(CONNECTIONS, text);
            }
        }
        Err(cause) => files.note("sock_diag(7)", cause.to_string()),
    }
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let tcp = read("proc/net/tcp") + &read("proc/net/tcp6");
    if let Some(text) = collect::servers(&tcp, &commands(root)) {
        files.put(SERVERS, text);
    }
    files.put(WAITS, waits(root));
    files
}

/// At most so many tasks are looked at.
const TASKS_MAX: usize = 65_536;

/// Tasks that cannot be interrupted, by where in the kernel they wait. What they are called and of
/// whom they are is not recorded.
fn waits(root: &Path) -> String {
    let threads = |process: PathBuf| processes(&process.join("task"));
    let tasks = processes(&root.join("proc")).flat_map(threads).take(TASKS_MAX);
    let read = |folder: &Path, name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    collect::waits(tasks.map(|folder| (read(&folder, "stat"), read(&folder, "wchan"))))
}

/// Names of all programs that run.
fn commands(root: &Path) -> Vec<String> {
    let command = |folder: PathBuf| std::fs::read_to_string(folder.join("comm")).ok();
    let named = |folder| Some(command(folder)?.trim_end().to_owned());
    processes(&root.join("proc")).filter_map(named).collect()
}

/// The folders of all processes in `/proc`, or in a copy of it.
pub fn processes(proc: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let all = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    all.filter(move |entry| entry.file_name().to_str().is_some_and(is_process))
        .map(|entry| entry.path())
}

/// Two samples as evidence, with the settings of the host.
pub fn both(root: &Path, first: Files, last: Files) -> Files {
    let mut files = Files::samples(first, last);
    let mut settings = collect::live_settings(root);
    if let Some(text) = spaces(root, &settings) {
        settings.put(SPACES, text);
    }
    files.join(settings.below("2"));
    files
}

/// How full the file systems are that this host exports, as df prints it.
fn spaces(root: &Path, settings: &Files) -> Option<String> {
    let exports = String::from_utf8_lossy(settings.text("etc/exports")?).into_owned();
    // Of the mounts, the settings have those of NFS only.
    let mountinfo = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let mut text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n".to_owned();
    let head = text.len();
    for one in collect::exported(&exports, &mountinfo) {
        let Ok(stat) = statvfs(one.point.as_str()) else { continue };
        let kib = |blocks: u64| blocks.saturating_mul(stat.f_frsize) / 1024;
        let used = kib(stat.f_blocks.saturating_sub(stat.f_bfree));
        let free = kib(stat.f_bavail);
        let percent = used.saturating_mul(100).div_ceil(used.saturating_add(free).max(1));
        let (device, point) = (one.device, one.point);
        text.push_str(&format!(
            "{device} {} {used} {free} {percent}% {point}\n",
            kib(stat.f_blocks)
        ));
    }
    (text.len() > head).then_some(text)
}
