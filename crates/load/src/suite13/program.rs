//! A C program of moderate size, generated: files in a hierarchy of directories, and what it prints
//! when it was compiled and linked right.
//!
//! Each part is a table and a chain of functions over unsigned integers of 32 bits; the last
//! function of a part calls that of the part before, so that no object can be left out. The same
//! operations are done here, for the number that `main` prints.

use std::fmt::Write;

use fastrand::Rng;

use super::generated::rng;
use super::sizes::Sizes;

/// What test 4 looks for; it stands in some of the files.
pub(super) const NEEDLE: &str = "seldom-found";
/// Entries of a part's table.
const TABLE: usize = 32;
/// Operations of a function.
const OPERATIONS: u32 = 6;

/// Paths are relative to the top of the hierarchy.
#[derive(Debug)]
pub(super) struct Program {
    /// Parents come first; the top itself is not among them.
    pub(super) dirs: Vec<String>,
    pub(super) files: Vec<(String, Vec<u8>)>,
    /// What it prints.
    pub(super) output: String,
    /// How often [`NEEDLE`] stands in the files.
    pub(super) needles: u64,
}

/// An operation on `x`, in C and here.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Xor(u32),
    Multiply(u32),
    Rotate(u32),
    Table,
    Branch(u32, u32),
}

impl Operation {
    fn random(rng: &mut Rng) -> Self {
        match rng.u32(..5) {
            0 => Self::Xor(rng.u32(..)),
            1 => Self::Multiply(rng.u32(..) | 1),
            2 => Self::Rotate(rng.u32(1..32)),
            3 => Self::Table,
            _ => Self::Branch(rng.u32(2..9), rng.u32(..)),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Xor(with) => format!("x ^= {with}u;"),
            Self::Multiply(by) => format!("x *= {by}u;"),
            Self::Rotate(by) => format!("x = ROTATE(x, {by});"),
            Self::Table => format!("x += table[x % {TABLE}];"),
            Self::Branch(by, add) => format!("if (x % {by}u == 0) x += {add}u; else x ^= x >> 3;"),
        }
    }

    fn apply(self, x: u32, table: &[u32; TABLE]) -> u32 {
        match self {
            Self::Xor(with) => x ^ with,
            Self::Multiply(by) => x.wrapping_mul(by),
            Self::Rotate(by) => x.rotate_left(by),
            Self::Table => x.wrapping_add(table[x as usize % TABLE]),
            Self::Branch(by, add) if x.is_multiple_of(by) => x.wrapping_add(add),
            Self::Branch(..) => x ^ (x >> 3),
        }
    }
}

impl Program {
    pub(super) fn generate(seed: u64, sizes: &Sizes) -> Self {
        let mut rng = rng(seed, "program");
        let folders = sizes.dirs.saturating_sub(2).max(1);
        let mut dirs = vec!["include".to_owned()];
        dirs.extend((1..=folders).map(|number| format!("m{number:02}")));
        let mut files = vec![("README".to_owned(), prose(&mut rng, 40).into_bytes())];
        files.push(("include/common.h".to_owned(), COMMON.as_bytes().to_vec()));
        files.push(("include/parts.h".to_owned(), parts_header(sizes.parts).into_bytes()));
        let (mut make, mut objects) = (String::new(), vec!["main.o".to_owned()]);
        let mut value = 1;
        for part in 0..sizes.parts {
            let dir = format!("m{:02}", part % folders + 1);
            let name = format!("part{part:02}");
            files.push((format!("include/{name}.h"), header(&mut rng, part, sizes).into_bytes()));
            let (source, result) = part_source(&mut rng, part, sizes, value);
            value = result;
            files.push((format!("{dir}/{name}.c"), source.into_bytes()));
            // Writing to a String does not fail.
            writeln!(
                make,
                "{dir}/{name}.o: {dir}/{name}.c include/{name}.h include/common.h\n\
                 \t$(CC) $(CFLAGS) -Iinclude -c {dir}/{name}.c -o {dir}/{name}.o"
            )
            .ok();
            objects.push(format!("{dir}/{name}.o"));
        }
        files.push(("main.c".to_owned(), main_source(sizes.parts).into_bytes()));
        files.push(("Makefile".to_owned(), makefile(&make, &objects).into_bytes()));
        let needles = files.iter().map(|(_, text)| count(text)).sum();
        Self { dirs, files, output: format!("{value}\n"), needles }
    }
}

/// How often the needle stands in a text.
pub(super) fn count(text: &[u8]) -> u64 {
    let needle = NEEDLE.as_bytes();
    text.windows(needle.len()).filter(|window| *window == needle).count() as u64
}

const COMMON: &str = "#ifndef COMMON_H\n#define COMMON_H\n\
    #define ROTATE(x, by) (((x) << (by)) | ((x) >> (32 - (by))))\n\
    typedef unsigned int word;\n#endif\n";

/// Sentences that mean nothing, as comments are long.
fn prose(rng: &mut Rng, lines: u32) -> String {
    const WORDS: [&str; 12] = [
        "cache", "file", "server", "reads", "writes", "again", "before", "after", "every", "block",
        "name", "handle",
    ];
    let mut text = String::new();
    for _ in 0..lines {
        let words = (0..9).map(|_| WORDS[rng.usize(..WORDS.len())]);
        let line = words.collect::<Vec<_>>().join(" ");
        let found = if rng.u32(..10) == 0 { NEEDLE } else { "often-found" };
        writeln!(text, "{line} {found}").ok();
    }
    text
}

fn parts_header(parts: u32) -> String {
    let mut text = "#ifndef PARTS_H\n#define PARTS_H\n#include \"common.h\"\n".to_owned();
    for part in 0..parts {
        writeln!(text, "word part{part:02}(word x);").ok();
    }
    text + "#endif\n"
}

fn header(rng: &mut Rng, part: u32, sizes: &Sizes) -> String {
    let mut text = format!("#ifndef PART{part:02}_H\n#define PART{part:02}_H\n/*\n");
    text += &prose(rng, 12);
    text += "*/\n#include \"common.h\"\n";
    for function in 0..sizes.functions {
        writeln!(text, "word part{part:02}_{function}(word x);").ok();
    }
    if let Some(before) = part.checked_sub(1) {
        writeln!(text, "word part{before:02}(word x);").ok();
    }
    writeln!(text, "word part{part:02}(word x);\n#endif").ok();
    text
}

/// The text of a part, and what its last function makes of `value`, the result of the part before.
fn part_source(rng: &mut Rng, part: u32, sizes: &Sizes, value: u32) -> (String, u32) {
    let table: [u32; TABLE] = std::array::from_fn(|_| rng.u32(..));
    let mut text =
        format!("#include \"part{part:02}.h\"\n\nstatic const word table[{TABLE}] = {{\n");
    for row in table.chunks(4) {
        let row = row.iter().map(|entry| format!("{entry}u,")).collect::<Vec<_>>().join(" ");
        writeln!(text, "    {row}").ok();
    }
    text += "};\n";
    let mut x = value;
    for function in 0..sizes.functions {
        writeln!(text, "\n/*\n{}*/\nword part{part:02}_{function}(word x)\n{{", prose(rng, 3)).ok();
        for _ in 0..OPERATIONS {
            let operation = Operation::random(rng);
            x = operation.apply(x, &table);
            writeln!(text, "    {}", operation.text()).ok();
        }
        text += "    return x;\n}\n";
    }
    let before = match part.checked_sub(1) {
        Some(before) => format!("part{before:02}(x)"),
        None => "x".to_owned(),
    };
    writeln!(text, "\nword part{part:02}(word x)\n{{\n    x = {before};").ok();
    for function in 0..sizes.functions {
        writeln!(text, "    x = part{part:02}_{function}(x);").ok();
    }
    text += "    return x;\n}\n";
    (text, x)
}

fn main_source(parts: u32) -> String {
    let last = parts.saturating_sub(1);
    format!(
        "#include <stdio.h>\n#include \"parts.h\"\n\nint main(void)\n{{\n    \
         printf(\"%u\\n\", part{last:02}(1u));\n    return 0;\n}}\n"
    )
}

fn makefile(rules: &str, objects: &[String]) -> String {
    let objects = objects.join(" ");
    format!(
        "CC = cc\nCFLAGS = -O1\n\nprogram: {objects}\n\t$(CC) -o program {objects}\n\n\
         main.o: main.c include/parts.h include/common.h\n\
         \t$(CC) $(CFLAGS) -Iinclude -c main.c -o main.o\n\n{rules}"
    )
}
