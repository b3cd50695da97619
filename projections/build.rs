//! Collects the migrations, so that a new one is just a file.

use std::{env, fmt::Write as _, fs, path::Path};

fn main() {
    let dir =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../migrations");
    println!("cargo:rerun-if-changed={}", dir.display());
    let mut names: Vec<String> = fs::read_dir(&dir)
        .expect("the migrations are part of the source")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".sql"))
        .collect();
    names.sort();
    let mut list = String::from("[\n");
    for (index, name) in names.iter().enumerate() {
        let number = name.split('_').next().and_then(|digits| digits.parse::<usize>().ok());
        assert_eq!(number, Some(index + 1), "migrations are numbered without a gap: {name}");
        let path = dir.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        writeln!(list, "include_str!(\"{}\"),", path.display()).expect("writing to a string");
    }
    list.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("set by cargo")).join("migrations.rs");
    fs::write(out, list).expect("the build directory can be written");
}
