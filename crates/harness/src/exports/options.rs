//! `--export PATH=OPTIONS`: options separated by commas, with the words of exports(5).

use std::path::PathBuf;

use server::Squash;

use super::{RuleSpec, Spec, anonymous, client, name};

/// What stands for an option that was not understood.
const FORM: &str = "the options are rw, ro, root_squash, no_root_squash, all_squash, anonuid=N, \
                    anongid=N, secure, insecure, client=NETWORK|HOST, name=PATH, id=N";

/// `--export`, before it is known whether its path is a directory or only a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Export {
    pub path: String,
    /// In the order in which they were given.
    options: Vec<Opt>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Opt {
    ReadOnly(bool),
    Squash(Squash),
    AnonymousUid(u32),
    AnonymousGid(u32),
    Secure(bool),
    Client(super::Client),
    Name(String),
    Id(u32),
}

/// Reads the value of `--export`.
pub fn parse(text: &str) -> Result<Export, String> {
    let (path, options) = text.split_once('=').unwrap_or((text, ""));
    if !path.starts_with('/') {
        return Err(format!(
            "an export begins with a slash, as in /export or /srv/data=ro,root_squash; \
             not {path:?}"
        ));
    }
    let options = options.split(',').filter(|option| !option.is_empty()).map(option);
    Ok(Export { path: path.to_owned(), options: options.collect::<Result<_, _>>()? })
}

fn option(text: &str) -> Result<Opt, String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (text, None),
    };
    let number = |value: &str| {
        value.parse::<u32>().map_err(|_| format!("{key}={value}: not a number below 2^32"))
    };
    Ok(match (key, value) {
        ("rw", None) => Opt::ReadOnly(false),
        ("ro", None) => Opt::ReadOnly(true),
        ("root_squash", None) => Opt::Squash(Squash::Root),
        ("no_root_squash", None) => Opt::Squash(Squash::None),
        ("all_squash", None) => Opt::Squash(Squash::All),
        ("secure", None) => Opt::Secure(true),
        ("insecure", None) => Opt::Secure(false),
        ("anonuid", Some(value)) => Opt::AnonymousUid(anonymous(number(value)?)?),
        ("anongid", Some(value)) => Opt::AnonymousGid(anonymous(number(value)?)?),
        ("client", Some(value)) => Opt::Client(client(value)?),
        ("name", Some(value)) => Opt::Name(name(value)?),
        ("id", Some(value)) => Opt::Id(number(value)?),
        _ => return Err(format!("unknown option {text:?}; {FORM}")),
    })
}

impl Export {
    /// As a directory of this host, mounted by its own path unless it is given a name.
    pub fn directory(&self) -> Result<Spec, String> {
        let spec = Spec {
            path: PathBuf::from(&self.path),
            name: name(&self.path)?,
            id: None,
            rule: RuleSpec::default(),
        };
        Ok(self.applied(spec))
    }

    /// As the name under which `store` is mounted, with options that change `rule`.
    pub fn name_of(&self, store: PathBuf, rule: RuleSpec) -> Result<Spec, String> {
        Ok(self.applied(Spec { path: store, name: name(&self.path)?, id: None, rule }))
    }

    fn applied(&self, mut spec: Spec) -> Spec {
        for option in &self.options {
            match option.clone() {
                Opt::ReadOnly(read_only) => spec.rule.read_only = read_only,
                Opt::Squash(squash) => spec.rule.squash = squash,
                Opt::AnonymousUid(uid) => spec.rule.anonymous_uid = uid,
                Opt::AnonymousGid(gid) => spec.rule.anonymous_gid = gid,
                Opt::Secure(secure) => spec.rule.secure = secure,
                Opt::Client(client) => spec.rule.clients.push(client),
                Opt::Name(name) => spec.name = name,
                Opt::Id(id) => spec.id = Some(id),
            }
        }
        spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::Client;

    #[test]
    fn options_have_the_words_of_exports() {
        let text = "/srv/data=ro,all_squash,anonuid=1000,anongid=100,secure,client=10.0.0.0/8,\
                    client=host.example,name=/data,id=7";
        let spec = parse(text).unwrap().directory().unwrap();
        assert_eq!((spec.path.to_str(), spec.name.as_str()), (Some("/srv/data"), "/data"));
        let rule = RuleSpec {
            clients: vec![
                Client::Network("10.0.0.0/8".parse().unwrap()),
                Client::Host("host.example".to_owned()),
            ],
            read_only: true,
            squash: Squash::All,
            anonymous_uid: 1000,
            anonymous_gid: 100,
            secure: true,
        };
        assert_eq!((spec.id, spec.rule), (Some(7), rule));
    }

    #[test]
    fn root_is_nobody_unless_trusted() {
        let squash = |text| parse(text).unwrap().directory().unwrap().rule.squash;
        assert_eq!(squash("/srv"), Squash::Root);
        assert_eq!(squash("/srv=rw"), Squash::Root);
        assert_eq!(squash("/srv=no_root_squash"), Squash::None);
    }

    #[test]
    fn any_port_will_do_only_where_it_is_stated() {
        let secure = |text| parse(text).unwrap().directory().unwrap().rule.secure;
        assert!(secure("/srv") && secure("/srv=secure"));
        assert!(!secure("/srv=insecure"));
    }

    #[test]
    fn what_is_not_understood_is_named_with_what_would_be() {
        for wrong in ["/srv=frobnicate", "/srv=ro=1", "/srv=anonuid", "/srv=rw,sync"] {
            let message = parse(wrong).unwrap_err();
            assert!(message.contains("unknown option") && message.contains("no_root_squash"));
        }
        assert!(parse("srv").unwrap_err().contains("begins with a slash"));
        assert!(parse("/srv=anonuid=-1").unwrap_err().contains("anonuid"));
        assert!(parse("/srv=anongid=4294967295").unwrap_err().contains("no user or group has"));
        assert!(parse("/srv=client=10.0.0.1/8").unwrap_err().contains("prefix"));
    }
}
