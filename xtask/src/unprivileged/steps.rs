//! What the ordinary user does, and what the other one tries meanwhile.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::attack::SET_UID;
use super::user::User;
use crate::host::child::{Service, finish, text};
use crate::host::nfskit::{Address, port, wait_for_port};
use crate::host::report::Report;

/// Far above what each takes, also where it is not optimized and the machine is busy.
const WITHIN: Duration = Duration::from_secs(240);
const START_WITHIN: Duration = Duration::from_secs(30);

/// Commands with servers inside, beside `study`; they are attacked from beginning to end.
const EMBEDDED: [&str; 5] = [
    "bench policies --quick",
    "papers loggp --quick --only L --point-time 10ms",
    "papers sensitivity --quick --time 200ms",
    "papers predict --quick --time 10ms",
    "papers whatif --quick --time 10ms",
];

/// Commands that measure and end in a verdict, which a busy machine can turn: exit code 1.
const JUDGING: [&str; 2] = ["bench curve", "papers "];

/// Commands that end by themselves and need nothing; URL stands for that of a server.
const WORKING: [&str; 9] = [
    "bench seqwrite --wire --size 1M --target URL",
    "bench seqwrite --size 1M --dir .",
    "bench curve --target URL --loads 50 --time 500ms --warm-up 100ms --file-set-max 1M",
    "bench rtt --target URL --size 64 --trials 10",
    "bench storage --dir . --size 256K --appends 10 --repeats 1",
    "bench tasks --dir . --tasks 1,2 --size 64K --times 2",
    "probe URL --quick --json probe.json",
    "model whatif probe.json L=1ms",
    "model simulate probe.json",
];

/// What an attacker must have seen, or done at a port, for its failure to say anything.
const CONNECTED: &str = "connected";
const TRIED: &str = "tried TCP";

/// Who does it, and with what.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) nfskit: PathBuf,
    pub(super) xtask: PathBuf,
    pub(super) owner: User,
    /// Nobody, where we cannot be another user.
    pub(super) stranger: Option<User>,
}

impl Stage {
    pub(super) fn play(&self, report: &mut Report) {
        report.check("study", "embedded, attacked", || self.study());
        for words in EMBEDDED {
            report.check("embedded", format!("{words}, attacked"), || self.embedded(words));
        }
        report.check("serve", "attacked", || self.serves_its_user_alone(&[]));
        report.check("serve", "over UDP, attacked", || self.serves_its_user_alone(&["--udp"]));
        report.check("serve", "insecure: the attack itself works", || self.serves_everybody());
        report.check("serve", "root's directory, attacked", || self.root_serves());
        report.check("link", "attacked", || self.links_for_its_user_alone());
        report.check("serve", "a stranger gets the reason", || self.a_stranger_gets_the_reason());
        match self.serve(&[]) {
            Err(why) => drop(report.check("serve", "for its user", || Err(why))),
            Ok((service, url, _)) => {
                for words in WORKING {
                    report.check("works", words, || self.works(&words.replace("URL", &url)));
                }
                report.check("works", "link, and trace of what passed", || self.link(&url));
                report.check("mount", "as far as fusermount3 can", || self.mount(&url));
                report.done("serve", "ends", || service.stop(START_WITHIN));
            }
        }
        report.check("trace", "of an interface takes a capability", || self.no_capability());
    }

    fn nfskit(&self, user: &User, words: &str) -> Command {
        let mut command = user.command(&self.nfskit);
        command.args(words.split(' '));
        command
    }

    fn works(&self, words: &str) -> Result<String, String> {
        match finish(&mut self.nfskit(&self.owner, words), WITHIN, text) {
            Ok(done) => Ok(format!("{:.1} s", done.seconds)),
            Err(why)
                if JUDGING.iter().any(|command| words.starts_with(command))
                    && why.contains("exit status: 1:") =>
            {
                Ok("done, with another verdict".to_owned())
            }
            Err(why) => Err(why),
        }
    }

    fn study(&self) -> Result<String, String> {
        let attack = self.attack(self.owner.uid)?;
        let done = self.works("study --quick --out studied")?;
        let outcome = self.survived(attack, CONNECTED)?;
        let report = self.owner.home.join("studied/report.html");
        let html = fs::read_to_string(report).map_err(|error| format!("report.html: {error}"))?;
        match html.contains("<svg") {
            true => Ok(format!("{done}, {outcome}")),
            false => Err("a report without a figure".to_owned()),
        }
    }

    /// Attacked until it has ended.
    fn embedded(&self, words: &str) -> Result<String, String> {
        let attack = self.attack(self.owner.uid)?;
        let done = self.works(words)?;
        let outcome = self.survived(attack, CONNECTED)?;
        Ok(format!("{done}, {outcome}"))
    }

    /// A server of the owner's on a new directory, its URL and the directory.
    fn serve(&self, options: &[&str]) -> Result<(Service, String, PathBuf), String> {
        self.serve_as(self.nfskit(&self.owner, "serve"), &self.owner.home, options)
    }

    fn serve_as(
        &self,
        mut command: Command,
        home: &std::path::Path,
        options: &[&str],
    ) -> Result<(Service, String, PathBuf), String> {
        let dir = tempfile::Builder::new().prefix("served-").tempdir_in(home);
        let dir = dir.map_err(|error| error.to_string())?.keep();
        if home == self.owner.home && self.stranger.is_some() {
            let uid = Some(self.owner.uid);
            std::os::unix::fs::chown(&dir, uid, uid).map_err(|error| error.to_string())?;
        }
        command.arg(&dir).args(["--listen", "127.0.0.1:0"]).args(options);
        let mut service = Service::start(&mut command)?;
        let port = wait_for_port(&mut service, START_WITHIN)?;
        Ok((service, Address::of(port).url(""), dir))
    }

    fn serves_its_user_alone(&self, options: &[&str]) -> Result<String, String> {
        let (service, url, dir) = self.serve(options)?;
        let attack = self.attack(self.owner.uid)?;
        let done = self.works(&format!("bench seqwrite --wire --size 1M --target {url}"))?;
        let outcome = self.survived(tried(attack, &url)?, TRIED)?;
        service.stop(START_WITHIN)?;
        match dir.join(set_uid()).exists() {
            true => Err("there is a set-uid file".to_owned()),
            false => Ok(format!("its user: {done}; {outcome}")),
        }
    }

    /// A relay in front of such a server: its connections are its user's.
    fn links_for_its_user_alone(&self) -> Result<String, String> {
        let (service, url, dir) = self.serve(&[])?;
        let (link, through) = self.relay(&url, "link --udp --to")?;
        let attack = self.attack(self.owner.uid)?;
        let done = self.works(&format!("bench seqwrite --wire --size 1M --target {through}"))?;
        let outcome = self.survived(tried(attack, &through)?, TRIED)?;
        link.stop(START_WITHIN)?;
        service.stop(START_WITHIN)?;
        match dir.join(set_uid()).exists() {
            true => Err("there is a set-uid file".to_owned()),
            false => Ok(format!("its user: {done}; {outcome}")),
        }
    }

    /// `nfskit link` to a server, and the URL that leads through it.
    fn relay(&self, url: &str, words: &str) -> Result<(Service, String), String> {
        let mut command = self.nfskit(&self.owner, words);
        let mut link = Service::start(command.arg(url))?;
        let port = wait_for_port(&mut link, START_WITHIN)?;
        Ok((link, Address::of(port).url("")))
    }

    /// What the attack is worth: it gets in where everybody may.
    fn serves_everybody(&self) -> Result<String, String> {
        if self.stranger.is_none() {
            return Ok("nobody attacks".to_owned());
        }
        let (service, _, dir) = self.serve(&["--export", "/=insecure"])?;
        let mut attack = self.attack(self.owner.uid)?.ok_or("there is a stranger")?;
        let got_in = |lines: &[String]| {
            lines.iter().find(|line| line.contains("a set-uid file made")).cloned()
        };
        let outcome = attack.wait_for(START_WITHIN, got_in)?;
        let made = fs::metadata(dir.join(set_uid())).map_err(|error| error.to_string())?;
        drop(attack);
        service.stop(START_WITHIN)?;
        match (made.mode() & 0o4000, made.uid() == self.owner.uid) {
            (0o4000, true) => Ok(outcome),
            _ => Err(format!("mode {:o}, uid {}", made.mode(), made.uid())),
        }
    }

    /// Root's server, and its own client.
    fn root_serves(&self) -> Result<String, String> {
        if self.stranger.is_none() {
            return Ok("not as root".to_owned());
        }
        let home = self.owner.home.parent().ok_or("a home is in a directory")?;
        let mut command = Command::new(&self.nfskit);
        command.args(["serve", "--state"]).arg(home.join("state"));
        let (service, url, dir) = self.serve_as(command, home, &["--udp"])?;
        let attack = self.attack(0)?;
        let mut own = Command::new(&self.nfskit);
        own.args(["bench", "seqwrite", "--wire", "--size", "64K", "--target", &url]);
        let own = finish(&mut own, WITHIN, text);
        let outcome = self.survived(tried(attack, &url)?, TRIED)?;
        service.stop(START_WITHIN)?;
        if dir.join(set_uid()).exists() {
            return Err("there is a set-uid file".to_owned());
        }
        // The directory is root's, and root of a client is nobody.
        match own {
            Err(why) if why.contains("NFS3ERR_ACCES") && why.contains("no_root_squash") => {
                Ok(format!("root is nobody; {outcome}"))
            }
            other => Err(format!("root's own client: {other:?}")),
        }
    }

    fn a_stranger_gets_the_reason(&self) -> Result<String, String> {
        let Some(stranger) = &self.stranger else { return Ok("there is none".to_owned()) };
        let (service, url, _) = self.serve(&[])?;
        let words = format!("bench seqwrite --wire --size 64K --target {url}");
        let refused = finish(&mut self.nfskit(stranger, &words), WITHIN, text);
        service.stop(START_WITHIN)?;
        match refused {
            Err(why) if why.contains("MNT3ERR_ACCES") && why.contains("insecure") => Ok(why),
            other => Err(format!("{other:?}")),
        }
    }

    fn link(&self, url: &str) -> Result<String, String> {
        let (link, through) = self.relay(url, "link --pcap link.pcap --to")?;
        self.works(&format!("bench seqwrite --wire --size 256K --target {through}"))?;
        link.stop(START_WITHIN)?;
        self.works("trace link.pcap --explain")
    }

    /// Mounts, writes, unmounts; or says what is missing.
    fn mount(&self, url: &str) -> Result<String, String> {
        let at = self.owner.home.join("mnt");
        fs::create_dir(&at).map_err(|error| error.to_string())?;
        if self.stranger.is_some() {
            let uid = Some(self.owner.uid);
            std::os::unix::fs::chown(&at, uid, uid).map_err(|error| error.to_string())?;
        }
        let mut command = self.nfskit(&self.owner, "mount");
        command.arg(url).arg(&at);
        let mut mount = Service::start(&mut command)?;
        let mounted = |lines: &[String]| {
            let is_outcome = |line: &&String| line.contains("mounted on") || line.contains("try: ");
            lines.iter().find(is_outcome).cloned()
        };
        let outcome = mount.wait_for(START_WITHIN, mounted)?;
        if outcome.contains("try: ") {
            return Ok(format!("the reason is given: {}", mount.lines().join(" ")));
        }
        let mut write = self.owner.command("/bin/sh".as_ref());
        write.args(["-c", "echo through > mnt/file && cat mnt/file && ls -l mnt"]);
        let written = finish(&mut write, WITHIN, text);
        mount.stop(START_WITHIN)?;
        match written?.value.starts_with("through") {
            true => Ok(outcome),
            false => Err("what was read is not what was written".to_owned()),
        }
    }

    fn no_capability(&self) -> Result<String, String> {
        let command = &mut self.nfskit(&self.owner, "trace --interface lo --time 1s");
        match finish(command, WITHIN, text) {
            Err(why) if why.contains("CAP_NET_RAW") || why.contains("root") => Ok(why),
            other if self.stranger.is_some() => Err(format!("{other:?}")),
            _ => Ok("this user may".to_owned()),
        }
    }

    /// Starts the other user, if there is one.
    fn attack(&self, victim: u32) -> Result<Option<Service>, String> {
        let Some(stranger) = &self.stranger else { return Ok(None) };
        let mut command = stranger.command(&self.xtask);
        // As cargo would have it.
        command.env("CARGO_MANIFEST_DIR", "/x/xtask");
        command.args([super::ATTACK, &victim.to_string()]);
        let mut attack = Service::start_with_input(&mut command)?;
        let ready = |lines: &[String]| lines.iter().any(|line| line == "ready").then_some(());
        attack.wait_for(START_WITHIN, ready)?;
        Ok(Some(attack))
    }

    /// Ends the attack, and fails if it got anything, or did not do what it must have done.
    fn survived(&self, attack: Option<Service>, done: &str) -> Result<String, String> {
        let Some(mut attack) = attack else { return Ok("nobody attacks".to_owned()) };
        attack.end_input();
        let ended =
            |lines: &[String]| lines.iter().find(|line| line.starts_with("looks ")).cloned();
        let looks = attack.wait_for(WITHIN, ended)?;
        let lines = attack.lines();
        let starting = |with: &str| lines.iter().find(|line| line.starts_with(with));
        match (starting("got in"), starting(done)) {
            (Some(line), _) => Err(line.clone()),
            (None, None) => Err(format!("the attack is worth nothing, it has not {done}")),
            (None, Some(_)) => Ok(format!("attacked: {looks}, nothing got")),
        }
    }
}

/// Waits until the attacker has connected to the server of this URL.
fn tried(attack: Option<Service>, url: &str) -> Result<Option<Service>, String> {
    let Some(mut attack) = attack else { return Ok(None) };
    let port = port(url).ok_or_else(|| format!("{url} has no port"))?;
    let line = format!("{TRIED} {port}");
    attack.wait_for(START_WITHIN, |lines| lines.contains(&line).then_some(()))?;
    Ok(Some(attack))
}

fn set_uid() -> &'static str {
    std::str::from_utf8(SET_UID).unwrap_or_default()
}
