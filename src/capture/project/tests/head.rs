use super::*;

const HASH: &str = "8f14e45fceea167a5a36dedd4bea2543c0ffee01";

impl Place {
    fn head(&self, dir: &str) -> (String, String) {
        let GitHead { branch, commit } = self.identify(dir).head();
        (branch, commit)
    }

    /// The output of git itself.
    fn git_output(&self, dir: &str, arguments: &[&str]) -> String {
        let output = Command::new("git").current_dir(self.join(dir)).args(arguments).output();
        String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
    }

    fn git_head(&self, dir: &str) -> (String, String) {
        let branch = self.git_output(dir, &["branch", "--show-current"]);
        (branch, self.git_output(dir, &["rev-parse", "HEAD"]))
    }

    /// A folder with a `.git` made by hand.
    fn by_hand(&self, head: &str) -> PathBuf {
        let git = self.folder("hand/.git/refs/heads").parent().unwrap().parent().unwrap().into();
        fs::write(self.join("hand/.git/HEAD"), head).unwrap();
        git
    }
}

fn pair(branch: &str, commit: &str) -> (String, String) {
    (branch.into(), commit.into())
}

#[test]
fn the_branch_and_the_commit_are_those_that_git_names() {
    let place = Place::new();
    place.repository("shop");
    place.git("shop", &["checkout", "-q", "-b", "fix/größe"]);
    let first = place.git_head("shop");
    assert_eq!((first.0.as_str(), first.1.len()), ("fix/größe", 40));
    assert_eq!(place.head("shop"), first);
    place.git("shop", &["commit", "-q", "--allow-empty", "-m", "more"]);
    let second = place.git_head("shop");
    assert_ne!(first, second);
    assert_eq!(place.head("shop"), second);
    place.git("shop", &["pack-refs", "--all"]);
    assert!(!place.join("shop/.git/refs/heads/fix/größe").exists());
    assert_eq!(place.head("shop"), second, "packed");
    place.git("shop", &["checkout", "-q", "--detach"]);
    assert_eq!(place.head("shop"), pair("", &second.1), "detached");
    place.git("shop", &["checkout", "-q", "--orphan", "new"]);
    assert_eq!(place.head("shop"), pair("new", ""), "no commit yet");
}

#[test]
fn worktrees_submodules_and_bare_repositories_have_their_own_head() {
    let place = Place::new();
    place.repository("library");
    place.repository("shop");
    place.git("shop", &["submodule", "--quiet", "add", "../library", "vendor/lib"]);
    place.git("shop/vendor/lib", &["checkout", "-q", "-b", "patched"]);
    place.git("shop", &["commit", "-q", "-m", "with a module"]);
    place.git("shop", &["worktree", "add", "-q", "../fix-1", "-b", "fix-1"]);
    place.git("fix-1", &["commit", "-q", "--allow-empty", "-m", "fixed"]);
    place.git("", &["clone", "-q", "--bare", "shop", "shop.git"]);
    symlink(place.join("fix-1"), place.join("link")).unwrap();
    for dir in ["shop", "shop/vendor/lib", "fix-1", "link", "shop.git"] {
        assert_eq!(place.head(dir), place.git_head(dir), "{dir}");
    }
    assert_ne!(place.head("shop").1, place.head("fix-1").1);
    fs::remove_dir_all(place.join("shop/.git/worktrees")).unwrap();
    assert_eq!(place.head("fix-1"), pair("", ""), "its directory is gone");
    assert_eq!(place.head(""), pair("", ""), "not in a repository");
}

#[test]
fn a_repository_with_sha_256_has_longer_commits() {
    let place = Place::new();
    place.folder("shop");
    place.git("shop", &["init", "-q", "--object-format=sha256"]);
    place.git("shop", &["commit", "-q", "--allow-empty", "-m", "begin"]);
    assert_eq!(place.head("shop").1.len(), 64);
    assert_eq!(place.head("shop"), place.git_head("shop"));
}

#[test]
fn reftables_are_not_read() {
    let place = Place::new();
    place.by_hand("ref: refs/heads/.invalid\n");
    place.folder("hand/.git/reftable");
    assert_eq!(place.head("hand"), pair("", ""));
}

#[test]
fn old_links_and_chains_of_names_are_followed_and_circles_end() {
    let place = Place::new();
    let git = place.by_hand("");
    fs::write(git.join("refs/heads/main"), format!("{}\n", HASH.to_uppercase())).unwrap();
    fs::remove_file(git.join("HEAD")).unwrap();
    symlink("refs/heads/main", git.join("HEAD")).unwrap();
    assert_eq!(place.head("hand"), pair("main", HASH));
    fs::write(git.join("refs/heads/alias"), "ref: refs/heads/main").unwrap();
    fs::remove_file(git.join("HEAD")).unwrap();
    fs::write(git.join("HEAD"), "ref:   refs/heads/alias\r\n").unwrap();
    assert_eq!(place.head("hand"), pair("alias", HASH));
    fs::write(git.join("refs/heads/main"), "ref: refs/heads/alias").unwrap();
    assert_eq!(place.head("hand"), pair("alias", ""));
    fs::write(git.join("HEAD"), "ref: refs/remotes/origin/main").unwrap();
    assert_eq!(place.head("hand"), pair("", ""));
}

#[test]
fn nothing_outside_of_the_references_is_opened() {
    let place = Place::new();
    place.by_hand("");
    fs::write(place.join("outside"), HASH).unwrap();
    let git = place.join("hand/.git");
    for name in [
        "refs/../../../outside",
        "refs/heads/../../../../outside",
        "../../outside",
        "outside",
        place.join("outside").to_str().unwrap(),
        "refs/heads/a..b",
        "refs/heads/a b",
        "refs/heads/\u{1b}[31m",
        "refs/heads/\u{9b}31m",
        "refs/heads/a:b",
        "refs/heads/a\\b",
        "refs/heads/x.lock",
        "refs//heads",
        "refs/heads/",
        "",
    ] {
        fs::write(git.join("HEAD"), format!("ref: {name}\n")).unwrap();
        assert_eq!(place.head("hand"), pair("", ""), "{name}");
    }
    for target in ["../../outside", "refs/heads/main"] {
        fs::write(git.join("HEAD"), "ref: refs/heads/linked\n").unwrap();
        let _ = fs::remove_file(git.join("refs/heads/linked"));
        symlink(target, git.join("refs/heads/linked")).unwrap();
        assert_eq!(place.head("hand"), pair("linked", ""), "{target}");
    }
    fs::remove_file(git.join("HEAD")).unwrap();
    symlink("../../outside", git.join("HEAD")).unwrap();
    assert_eq!(place.head("hand"), pair("", ""));
}

#[test]
fn pipes_folders_and_long_files_are_skipped() {
    let place = Place::new();
    let git = place.by_hand("ref: refs/heads/main\n");
    let pipe = |path: &Path| {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe(&git.join("refs/heads/main"));
    pipe(&git.join("packed-refs"));
    assert_eq!(place.head("hand"), pair("main", ""));
    fs::remove_file(git.join("refs/heads/main")).unwrap();
    fs::create_dir(git.join("refs/heads/main")).unwrap();
    assert_eq!(place.head("hand"), pair("main", ""));
    fs::write(git.join("HEAD"), format!("ref: refs/heads/{}", "x".repeat(5000))).unwrap();
    assert_eq!(place.head("hand"), pair("", ""));
    for content in [&b"\xff\xfe\x00"[..], b"", b"deadbeef", &[b'0'; 41], b"ref: refs/heads/\xff"] {
        fs::write(git.join("HEAD"), content).unwrap();
        assert_eq!(place.head("hand"), pair("", ""), "{content:?}");
    }
    fs::remove_file(git.join("HEAD")).unwrap();
    pipe(&git.join("HEAD"));
    assert_eq!(place.head("hand"), pair("", ""));
}

#[test]
fn packed_references_are_read_up_to_a_limit() {
    let place = Place::new();
    let git = place.by_hand("ref: refs/heads/main\n");
    let before = format!("{HASH} refs/heads/m\n^{HASH}\n{HASH} refs/heads/maim\n");
    let main = format!("{HASH} refs/heads/main\n");
    let tags: String = (0..40_000).map(|number| format!("{HASH} refs/tags/{number}\n")).collect();
    let sorted = "# pack-refs with: peeled fully-peeled sorted \n";
    let read = |text: String| {
        fs::write(git.join("packed-refs"), text).unwrap();
        place.head("hand").1
    };
    assert_eq!(read(format!("{sorted}{before}{main}{tags}")), HASH);
    assert_eq!(read(format!("{before}{main}")), HASH);
    assert_eq!(read(format!("{HASH} refs/heads/z\n{main}")), HASH, "not sorted");
    assert_eq!(read(format!("{sorted}{before}{tags}")), "");
    assert_eq!(read(format!("{tags}{main}")), "", "behind the limit");
    assert_eq!(read(format!("{HASH} refs/heads/main")), "", "cut off");
    assert_eq!(read("x refs/heads/main\n\n \n#".into()), "");
}
