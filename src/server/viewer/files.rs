//! The viewer's files, embedded in the binary.

use std::{io::Write, sync::OnceLock};

use flate2::{Compression, write::GzEncoder};

/// One file, with values computed at its first request.
pub(super) struct File {
    name: &'static str,
    /// Uncompressed text.
    pub(super) text: &'static str,
    tag: OnceLock<String>,
    packed: OnceLock<Vec<u8>>,
}

impl File {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, tag: OnceLock::new(), packed: OnceLock::new() }
    }

    /// Content type by file name.
    pub(super) fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }

    /// The `ETag`.
    pub(super) fn tag(&self) -> &str {
        self.tag.get_or_init(|| {
            let hash = blake3::hash(self.text.as_bytes()).to_hex();
            format!("\"{}\"", &hash[..20])
        })
    }

    /// The gzip-compressed text, computed once.
    pub(super) fn packed(&self) -> &[u8] {
        self.packed.get_or_init(|| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            let written = packer.write_all(self.text.as_bytes()).and_then(|()| packer.finish());
            written.expect("writing to a vector cannot fail")
        })
    }
}

/// The page, which loads the other files.
pub(super) static PAGE: File = File::new("index.html", include_str!("assets/index.html"));

/// The file of this name. Never accesses the disk.
pub(super) fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(File::new($name, include_str!(concat!("assets/", $name)))),*]
    };
}

static FILES: [File; 48] = files![
    "api.js",
    "app.js",
    "browser_key.js",
    "chart.js",
    "charts.css",
    "context.js",
    "controls.css",
    "decisions.js",
    "detail.js",
    "diff.js",
    "dom.js",
    "events.js",
    "evidence.js",
    "feed.js",
    "files.js",
    "filters.css",
    "filters.js",
    "forget.js",
    "format.js",
    "frame.css",
    "icons.js",
    "keys.js",
    "log.js",
    "mark.svg",
    "markdown.js",
    "origin.css",
    "pages.css",
    "palette.js",
    "preview.js",
    "project.js",
    "provenance.js",
    "replay.css",
    "replay.js",
    "revise.js",
    "router.js",
    "rows.css",
    "rows.js",
    "selection.js",
    "sessions.js",
    "settings.js",
    "sidebar.js",
    "stats.js",
    "story.css",
    "story.js",
    "theme.js",
    "toast.js",
    "tone.css",
    "write.js",
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    fn scripts() -> impl Iterator<Item = &'static File> {
        FILES.iter().filter(|file| file.name.ends_with(".js"))
    }

    #[test]
    fn every_file_in_the_directory_is_in_the_binary() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/viewer/assets");
        let there: BTreeSet<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let known = FILES.iter().map(|file| file.name.to_owned());
        assert_eq!(there, known.chain(["index.html".to_owned()]).collect());
    }

    #[test]
    fn every_referenced_file_exists() {
        let asked = |text: &'static str, before: &'static str| {
            text.split(before).skip(1).map(|rest| rest.split('"').next().unwrap())
        };
        for name in asked(PAGE.text, "\"/assets/") {
            assert!(find(name).is_some(), "the page asks for {name}");
        }
        for script in scripts() {
            for name in asked(script.text, "\"./") {
                assert!(find(name).is_some(), "{} asks for {name}", script.name);
            }
        }
    }

    /// The browser refuses all of these under our policy; this test finds it without a browser.
    #[test]
    fn recorded_text_cannot_become_markup() {
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "DOMParser",
        ];
        for (script, way) in scripts().flat_map(|script| ways.map(|way| (script, way))) {
            assert!(!script.text.contains(way), "{} has {way}", script.name);
        }
        for inline in ["<style", "style=", "onclick", "<script>", "javascript:"] {
            assert!(!PAGE.text.contains(inline), "{inline}");
        }
    }

    #[test]
    fn no_file_refers_to_another_server() {
        for file in FILES.iter().chain([&PAGE]) {
            let text = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{}", file.name);
            assert!(!text.contains("url("), "{}", file.name);
        }
    }

    #[test]
    fn different_texts_have_different_tags() {
        let tags: BTreeSet<&str> = FILES.iter().map(File::tag).collect();
        assert_eq!(tags.len(), FILES.len());
    }
}
