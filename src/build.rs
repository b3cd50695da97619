//! Links the binary statically on Linux, because a hook is started for every tool call and the
//! dynamic loader alone costs half as much again as an empty program.
//!
//! `-C target-feature=+crt-static` would also apply to procedural macros, which must stay dynamic,
//! and choosing an explicit target moves the binary out of `target/release`. So one-line linker
//! scripts replace the libraries that the standard library requests by name. They name the static
//! archives. Where the C library has no static form, the binary is linked as usual, with a warning.

use std::{env, fs, path::Path, process::Command};

/// The requested libraries, and the static archives that provide them.
const STATIC_FORMS: &[(&str, &str)] = &[
    ("gcc_s", "libgcc.a libgcc_eh.a"),
    ("c", "libc.a libgcc.a libgcc_eh.a"),
    ("m", "libm.a"),
    ("util", "libutil.a"),
    ("rt", "librt.a"),
    ("pthread", "libpthread.a"),
    ("dl", "libdl.a"),
];

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    println!("cargo:rustc-check-cfg=cfg(static_libc)");
    let is_linux_gnu = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
        && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|abi| abi == "gnu");
    let is_native = env::var("HOST").ok() == env::var("TARGET").ok();
    if !is_linux_gnu || !is_native {
        return;
    }
    if !["libc.a", "libgcc_eh.a", "libm.a"].into_iter().all(has_archive) {
        println!(
            "cargo:warning=no static C library here: linking dynamically, hooks start 0.2 ms later"
        );
        return;
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    for (name, archives) in STATIC_FORMS {
        fs::write(Path::new(&out).join(format!("lib{name}.so")), format!("GROUP({archives})\n"))
            .expect("OUT_DIR is writable");
    }
    for argument in [format!("-L{out}"), "-static".into(), "-no-pie".into()] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rustc-cfg=static_libc");
}

/// The C compiler prints a path if it has the archive, else the bare name.
fn has_archive(name: &str) -> bool {
    Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()))
        .arg(format!("-print-file-name={name}"))
        .output()
        .is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).contains('/'))
}
