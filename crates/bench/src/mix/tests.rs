use super::*;

fn of(text: &str, version: Option<Version>) -> Result<Mix, String> {
    of_text("it".to_owned(), text.as_bytes(), "FILE", version).map_err(|failure| {
        assert!(!failure.advice().is_empty());
        failure.what().to_owned()
    })
}

fn share(mix: &Mix, operation: Operation) -> f64 {
    (mix.share(operation) * 1_000.0).round() / 10.0
}

const SERVER: &str = "rc 1 2 3\nproc2 18 0 10 0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
    proc3 22 0 500 0 250 0 0 150 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nproc4 2 1 70\n";

#[test]
fn what_makes_room_is_an_option_of_the_command() {
    let full = LoadError::NoRoom { need_bytes: 9, free_bytes: 1, need_files: 1, free_files: 1 };
    let failed = failure(full, "fewer --processes");
    assert!(failed.advice().ends_with("or fewer --processes"), "{}", failed.advice());
    let full = LoadError::NoRoom { need_bytes: 9, free_bytes: 1, need_files: 1, free_files: 1 };
    assert!(!Failure::from(full).advice().contains("--"), "of any command");
    assert!(!failure(LoadError::Ended, "fewer --processes").advice().contains("--processes"));
}

#[test]
fn words_name_mixes_and_operations() {
    assert_eq!(read("LADDIS", None).unwrap().name, "laddis");
    let single = read("getattr", Some(Version::Two)).unwrap();
    assert_eq!((single.name, share(&single, Operation::Getattr)), ("getattr", 100.0));
    let lacking = read("sfs97-v3", Some(Version::Two)).unwrap_err();
    assert!(lacking.what().contains("version 2 has no readdirplus"), "{}", lacking.what());
    let unknown = read("/no/such/mix", None).unwrap_err();
    assert!(unknown.what().contains("there is no file of that name"), "{}", unknown.what());
    assert!(unknown.advice().contains("sfs2008-v3"));
    let directory = read("/", None).unwrap_err();
    assert!(directory.what().contains("cannot read /"), "{}", directory.what());
}

#[test]
fn a_file_is_recognised_by_its_content() {
    let server = of(SERVER, None).unwrap();
    assert_eq!(share(&server, Operation::Getattr), 50.0);
    let note = "1000 calls of version 3 that the kernel's server has counted; left out: calls \
                13 of version 2, 71 of version 4";
    assert_eq!((server.source, server.sureness), (note, Sureness::Counted));
    let client = SERVER.replace("rc 1 2 3\n", "net 1 2 3 4\nrpc 1 2 3\n");
    assert!(of(&client, None).unwrap().source.contains("the kernel's client"));
    let mounts = "device s:/ mounted on /a with fstype nfs statvers=1.1\n\topts:\trw,vers=3\n\
        \tper-op statistics\n\tREAD: 300 300 0 0 0 0 0 0\n\tWRITE: 100 100 0 0 0 0 0 0\n\
        device s:/ mounted on /b with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2\n\
        \tper-op statistics\n\tREAD: 7 7 0 0 0 0 0 0\n";
    let mounts = of(mounts, Some(Version::Three)).unwrap();
    assert_eq!(share(&mounts, Operation::Read), 75.0);
    assert!(mounts.source.ends_with("left out: calls 7 of version 4"), "{}", mounts.source);
    let nfsstat = "Server nfs v3:\nnull getattr\n0 0% 10 100%\n\nClient nfs v3:\nnull getattr\n\
        100 10% 900 90%\n";
    let nfsstat = of(nfsstat, None).unwrap();
    assert_eq!(share(&nfsstat, Operation::Null), 10.0);
    assert!(nfsstat.source.contains("the client's side of nfsstat"), "{}", nfsstat.source);
    let listing = of("getattr 40\nread 60\n", None).unwrap();
    assert_eq!((share(&listing, Operation::Read), listing.source), (60.0, "given in FILE"));
}

#[test]
fn what_cannot_be_a_mix_says_why_and_where() {
    let problem = |text: &str, version| of(text, version).unwrap_err();
    assert_eq!(
        problem(SERVER, Some(Version::Two)),
        "FILE: the kernel's server has counted 10 calls of version 2, and a mix rests on 100 at \
         least; left out: calls 3 of ROOT, 1000 of version 3, 71 of version 4"
    );
    assert!(
        problem(&SERVER.replace("250", "x"), None).starts_with("FILE: line 3, column 18: \"x\"")
    );
    let access = problem("getattr 40\naccess 60", Some(Version::Two));
    assert!(access.starts_with("FILE: line 2, column 1: NFS version 2 has no access"), "{access}");
    assert!(problem("getattr 40", None).contains("add up to 40.00, not to 100"));
    assert!(problem("\u{a1}", None).contains("line 1, column 1"));
    assert!(problem("", None).contains("there is no operation in it"));
    let v4 = "rc 1 2 3\nproc4 2 1 70000\n";
    assert!(problem(v4, None).contains("left out: calls 70001 of version 4"));
}
