//! The end: everything committed, then compared with the model, through the server and on disk.

use std::path::Path;

use wire::nfs3::readdir;
use wire::xdr::{Decode, Encode};
use wire::{Procedure, nfs3};

use super::answer::differs;
use super::client::Client;
use super::model::{FILE_BYTES_MAX, Kind};
use super::operation::Operation;
use super::tally::Violation;

const PAGE_BYTES: u32 = 8 << 10;

impl Client<'_> {
    /// Compares all that this client made. `root` is the directory that is served.
    pub(super) fn verify(&mut self, root: &Path) -> Result<(), String> {
        self.commit_all()?;
        for folder in 0..self.folders.len() {
            let listed = self.list(folder)?;
            self.compare_names(folder, "READDIR", listed);
            let on_disk = std::fs::read_dir(root.join(&self.folders[folder]))
                .map_err(|error| format!("{}: {error}", self.folders[folder]))?;
            let on_disk = on_disk.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
            let on_disk = on_disk.collect();
            self.compare_names(folder, "on disk", on_disk);
        }
        let there: Vec<usize> = self.model.there().map(|(id, _)| id).collect();
        for id in there {
            for name in self.model.objects[id].names.clone() {
                self.model.objects[id].naming = true;
                self.finish(Operation::Lookup { id, name })?;
            }
            if self.model.objects[id].kind == Kind::File {
                self.model.objects[id].alone = true;
                self.finish(Operation::Read { id, range: 0..FILE_BYTES_MAX })?;
                self.compare_on_disk(id, root);
            }
            self.finish(Operation::Getattr { id })?;
        }
        Ok(())
    }

    /// Writes again what was lost, and commits, until nothing is left.
    fn commit_all(&mut self) -> Result<(), String> {
        let there: Vec<usize> = self.model.there().map(|(id, _)| id).collect();
        for id in there {
            // A process that is not restarted loses nothing: twice is enough.
            for _ in 0..3 {
                while let Some(range) = self.model.objects[id].lost.pop() {
                    let data = self.model.objects[id].content[range.clone()].to_vec();
                    self.model.objects[id].ranges.push(range.clone());
                    let stable = nfs3::StableHow::Unstable;
                    self.finish(Operation::Write { id, range, data, stable, again: true })?;
                }
                if !self.model.objects[id].dirty.is_empty() {
                    self.finish(Operation::Commit { id, upto: self.model.order })?;
                }
            }
            let object = &self.model.objects[id];
            if !object.dirty.is_empty() || !object.lost.is_empty() {
                let what = format!("{:?} does not become stable", object.names);
                self.tally.violation(Violation::LessStable, what);
            }
        }
        Ok(())
    }

    fn list(&mut self, folder: usize) -> Result<Vec<String>, String> {
        let (dir, count) = (self.handles[folder], PAGE_BYTES);
        let (mut cookie, mut cookieverf) = (0, [0; 8]);
        let mut names = Vec::new();
        loop {
            let args = readdir::Args { dir, cookie, cookieverf, count }.to_bytes();
            let procedure = Procedure::Nfs3(nfs3::Procedure::Readdir);
            let (page, eof, verifier) = self.ask(procedure, &args, |r| {
                let reply = readdir::Reply::decode(r)?;
                Ok(reply.map_or((Vec::new(), true, [0; 8]), |ok| {
                    let entries = ok.entries.iter();
                    let page: Vec<(u64, String)> = entries
                        .map(|e| (e.cookie, String::from_utf8_lossy(e.name).into_owned()))
                        .collect();
                    (page, ok.eof, ok.cookieverf)
                }))
            })?;
            cookie = page.last().map_or(cookie, |(cookie, _)| *cookie);
            cookieverf = verifier;
            names.extend(page.into_iter().map(|(_, name)| name).filter(|n| n != "." && n != ".."));
            if eof {
                return Ok(names);
            }
        }
    }

    fn compare_names(&mut self, folder: usize, how: &str, mut found: Vec<String>) {
        found.sort();
        self.tally.checks += 1;
        let expected = self.model.names_in(folder);
        if found == expected {
            return;
        }
        let missing = expected.iter().filter(|name| !found.contains(name)).count();
        let strange: Vec<&String> = found.iter().filter(|name| !expected.contains(name)).collect();
        let what = format!(
            "{} {how}: {} names for {}, {missing} missing, {} strange: {:?}",
            self.folders[folder],
            found.len(),
            expected.len(),
            strange.len(),
            strange.first()
        );
        self.tally.violation(Violation::Differs, what);
    }

    fn compare_on_disk(&mut self, id: usize, root: &Path) {
        let object = &self.model.objects[id];
        let Some(name) = object.names.first() else { return };
        let path = root.join(&self.folders[name.folder]).join(&name.text);
        self.tally.checks += 1;
        let found = std::fs::read(&path).unwrap_or_default();
        if found != object.content {
            let (violation, what) = differs(&object.names, 0, &found, &object.content);
            self.tally.violation(violation, format!("on disk, {what}"));
        }
    }
}
