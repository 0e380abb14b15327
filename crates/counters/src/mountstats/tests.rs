use super::*;

const TEXT: &str = "\
no device mounted on / with fstype rootfs
device proc mounted on /proc with fstype proc
device server:/export mounted on /mnt/my\\040files with fstype nfs statvers=1.1
\topts:\trw,vers=3,rsize=1048576,wsize=1048576,hard,proto=tcp,nconnect=2,sec=sys
\tage:\t1234
\timpl_id:\tname='',domain='',
\t\tdate='0,0'
\tcaps:\tcaps=0x3fef,wtmult=4096,dtsize=1048576,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
\tbytes:\t100 200 0 0 100 200 1 2
\tfsc:\t0 0 0 0 0
\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)
\txprt:\ttcp 800 1 2 0 3 401 400 0 450 17 16 30 40
\txprt:\ttcp 801 1 1 0 3 399 399 0 400 0 16 30 40
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t     GETATTR: 300 301 0 30000 33600 18446743919241604546 60 70 2
\t       WRITE: 500 500 1 52428800 68000 5000 900 6000 0

device other:/ mounted on /mnt/old with fstype nfs statvers=1.0
\topts:\trw,vers=2,udp
\tage:\t9
\tevents:\t0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1
\tbytes:\t0 0 0 0 0 0
\tRPC iostats version: 1.0  p/v: 100003/2 (nfs)
\txprt:\tudp 700 1 12 11 0 13 14
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t     GETATTR: 12 14 0 1 2 3 4 5
device tmpfs mounted on /tmp with fstype tmpfs
";

fn wrong(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from));
    read(TEXT.replace(from, to).as_bytes()).unwrap_err().to_string()
}

#[test]
fn mounts_of_both_formats_are_read() {
    let mounts = read(TEXT.as_bytes()).unwrap();
    assert_eq!(mounts.len(), 2);
    let mount = at(&mounts, "/mnt/my files/").unwrap();
    assert_eq!((mount.device.as_str(), mount.age_s), ("server:/export", Some(1234)));
    assert_eq!((mount.option("nconnect"), mount.option("hard")), (Some("2"), Some("")));
    assert_eq!((mount.option("soft"), mount.version()), (None, Some(3)));
    assert_eq!(mount.security.as_deref(), Some("flavor=1,pseudoflavor=1"));
    let events = mount.events.as_ref().unwrap();
    assert_eq!(events.of(Event::InodeRevalidate), Some(1));
    assert_eq!((events.of(Event::Delay), events.of(Event::PnfsWrite)), (Some(25), Some(27)));
    assert_eq!(mount.bytes.unwrap().server_write, 200);
    let [first, second] = &mount.transports[..] else { panic!("{mount:?}") };
    assert_eq!((first.connects, first.sends, first.slots_max), (Some(2), Some(401), Some(16)));
    assert_eq!((second.port, second.backlog_mean()), (Some(801), Some(0.0)));
    assert_eq!(mount.operations.len(), 3);
    let getattr = mount.operation("getattr").unwrap();
    assert_eq!((getattr.calls, getattr.retransmissions(), getattr.errors), (300, 1, Some(2)));
    let old = at(&mounts, "/mnt/old").unwrap();
    assert_eq!((old.format.as_str(), old.version()), ("1.0", Some(2)));
    assert_eq!(old.events.as_ref().unwrap().of(Event::PnfsRead), None);
    assert_eq!((old.transports[0].sends, old.transports[0].slots_max), (Some(12), None));
    assert_eq!(old.operations[1].errors, None);
}

#[test]
fn what_came_between_is_a_difference_that_may_wrap() {
    let before = read(TEXT.as_bytes()).unwrap();
    let after = TEXT.replace("300 301 0 30000 33600 18446743919241604546", "310 311 0 1 2 5");
    let after = read(after.as_bytes()).unwrap();
    let since = after[0].operations_since(&before[0]);
    assert_eq!(since.iter().map(|one| one.calls).collect::<Vec<_>>(), [0, 10, 0]);
    assert_eq!(since[1].queue_ms, 5_u64.wrapping_sub(18_446_743_919_241_604_546));
    let events = after[0].events.as_ref().unwrap().since(before[0].events.as_ref().unwrap());
    assert_eq!(events.of(Event::Open), Some(0));
}

#[test]
fn what_is_broken_has_its_place() {
    assert!(wrong("GETATTR: 300 301", "GETATTR: 300 x").starts_with("line 18, column 20: \"x\""));
    assert!(wrong("NULL: 1 1 0 44 24 0 0 0 0", "NULL: 1 1").contains("NULL has 2 numbers"));
    assert!(wrong("age:\t1234", "age:\tlong").starts_with("line 5, column 7: \"long\""));
    assert!(wrong("p/v: 100003/3", "p/v: NFS").contains("\"NFS\" where PROGRAM/VERSION"));
    assert!(wrong("xprt:\tudp 700 1 12", "xprt:\tudp 12").contains("xprt: udp has 5 numbers"));
    assert!(wrong("nfs statvers=1.1", "nfs").contains("where statvers= is expected"));
    assert!(read(b"rc 1 2 3").unwrap_err().to_string().contains("no NFS counters"));
    assert_eq!(read(b"device a mounted on /b with fstype ext4\n"), Ok(Vec::new()));
}

#[test]
fn half_a_text_gives_what_is_in_it_or_a_problem() {
    for end in 0..TEXT.len() {
        read(&TEXT.as_bytes()[..end]).ok();
    }
}
