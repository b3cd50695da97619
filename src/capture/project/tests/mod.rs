use std::{os::unix::fs::symlink, process::Command};

use super::*;

mod head;

/// A directory with real repositories, created by git.
struct Place {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        Self { _dir: dir, path }
    }

    fn join(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    fn folder(&self, path: &str) -> PathBuf {
        fs::create_dir_all(self.join(path)).unwrap();
        self.join(path)
    }

    fn git(&self, dir: &str, arguments: &[&str]) {
        let output = Command::new("git")
            .current_dir(self.join(dir))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=ada", "-c", "user.email=ada@example.com"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// A repository with one commit.
    fn repository(&self, dir: &str) {
        self.folder(dir);
        self.git(dir, &["init", "-q"]);
        self.git(dir, &["commit", "-q", "--allow-empty", "-m", "begin"]);
    }

    fn identify(&self, dir: &str) -> ProjectId {
        ProjectId::of(&self.join(dir))
    }
}

#[test]
fn a_repository_is_identified_by_its_remote_and_named_by_its_folder() {
    let place = Place::new();
    place.repository("my-shop");
    place.git("my-shop", &["remote", "add", "origin", "https://x:secret@GitHub.com/Ada/Shop.git"]);
    place.folder("my-shop/src/deep");
    assert_eq!(
        place.identify("my-shop/src/deep"),
        ProjectId {
            key: "github.com/ada/shop".into(),
            label: "my-shop".into(),
            root: place.join("my-shop"),
            remote: Some("github.com/Ada/Shop".into()),
            common_dir: Some(place.join("my-shop/.git")),
            git_dir: Some(place.join("my-shop/.git")),
        }
    );
}

#[test]
fn a_folder_without_git_is_a_separate_project() {
    let place = Place::new();
    let notes = place.folder("notes");
    let expected = ProjectId {
        key: notes.to_str().unwrap().into(),
        label: "notes".into(),
        root: notes,
        remote: None,
        common_dir: None,
        git_dir: None,
    };
    assert_eq!(place.identify("notes"), expected);
    assert_eq!(ProjectId::of(Path::new("/")).label, "/");
}

#[test]
fn a_worktree_belongs_to_its_parent() {
    let place = Place::new();
    place.repository("shop");
    place.git("shop", &["worktree", "add", "-q", "../elsewhere/fix-1", "-b", "fix-1"]);
    let (parent, worktree) = (place.identify("shop"), place.identify("elsewhere/fix-1"));
    assert_eq!(worktree.key, parent.key);
    assert_eq!(worktree.label, "shop");
    assert_eq!(worktree.root, place.join("elsewhere/fix-1"));
    assert_eq!(worktree.common_dir, parent.common_dir);
    place.git("shop", &["worktree", "add", "-q", ".worktrees/fix-2", "-b", "fix-2"]);
    fs::remove_dir_all(place.join("shop/.git/worktrees")).unwrap();
    let pruned = place.identify("shop/.worktrees/fix-2");
    assert_eq!((pruned.key, pruned.label), (parent.key.clone(), "shop".into()));
    assert_ne!(place.identify("elsewhere/fix-1").key, parent.key, "nothing links to it");
    let removed = place.identify("worktrees/shop/fix-1/shop");
    assert_eq!((removed.key, removed.label), (parent.key, "shop".into()));
    assert_eq!(removed.root, place.join("worktrees/shop/fix-1/shop"));
    let folder = place.folder("worktrees/notes/a/notes");
    assert_eq!(ProjectId::of(&folder).root, folder, "a folder that exists and has no repository");
}

#[test]
fn a_submodule_is_its_own_project_and_so_are_its_worktrees() {
    let place = Place::new();
    place.repository("library");
    place.repository("shop");
    place.git("shop", &["submodule", "--quiet", "add", "../library", "vendor/lib"]);
    let module = place.identify("shop/vendor/lib");
    assert_eq!((module.label.as_str(), &module.root), ("lib", &place.join("shop/vendor/lib")));
    assert_eq!(module.key, place.identify("library").key, "it is a clone of it");
    assert_ne!(module.key, place.identify("shop").key);
    place.git("shop/vendor/lib", &["worktree", "add", "-q", "../../../lib-fix", "-b", "fix"]);
    let worktree = place.identify("lib-fix");
    assert_eq!((worktree.key, worktree.label), (module.key, module.label));
}

#[test]
fn content_of_a_repository_cannot_take_the_identity_of_another() {
    let place = Place::new();
    for repository in ["secret", "shop"] {
        place.repository(repository);
        let url = format!("https://github.com/corp/{repository}");
        place.git(repository, &["remote", "add", "origin", &url]);
    }
    place.git("secret", &["worktree", "add", "-q", "../fix", "-b", "fix"]);
    assert_eq!(place.identify("fix").key, "github.com/corp/secret");
    place.git("", &["clone", "-q", "--bare", "secret", "shop/packages/app"]);
    place.git(
        "shop/packages/app",
        &["remote", "set-url", "origin", "https://github.com/corp/secret"],
    );
    assert_eq!(place.identify("shop/packages/app").key, "github.com/corp/shop");
    assert_eq!(place.identify("shop/packages/app/refs").key, "github.com/corp/shop");
    for named in ["secret/.git", "secret/.git/worktrees/fix", "secret/.git/worktrees/gone"] {
        for folder in ["shop/vendor", "unpacked"] {
            place.folder(folder);
            let link = format!("gitdir: {}\n", place.join(named).display());
            fs::write(place.join(folder).join(".git"), link).unwrap();
            assert_ne!(place.identify(folder).key, "github.com/corp/secret", "{named} {folder}");
        }
    }
}

#[test]
fn bare_repositories_and_worktrees_next_to_them_are_named_without_dots() {
    let place = Place::new();
    place.repository("origin");
    place.git("", &["clone", "-q", "--bare", "origin", "shop.git"]);
    place.git("shop.git", &["remote", "remove", "origin"]);
    assert_eq!(place.identify("shop.git").label, "shop");
    assert_eq!(place.identify("shop.git/refs").key, place.identify("shop.git").key);
    place.git("", &["clone", "-q", "--bare", "origin", "market/.bare"]);
    place.git("market/.bare", &["worktree", "add", "-q", "../main", "-b", "side"]);
    assert_eq!(place.identify("market/main").label, "market");
    assert_eq!(place.identify("origin/.git/hooks").root, place.join("origin"));
}

#[test]
fn a_clone_of_a_folder_shares_its_project() {
    let place = Place::new();
    place.repository("shop");
    place.git("", &["clone", "-q", "shop", "copy"]);
    assert_eq!(place.identify("copy").key, place.identify("shop").key);
    assert_eq!(place.identify("copy").label, "copy");
}

#[test]
fn links_and_folders_that_are_gone_lead_to_the_same_project() {
    let place = Place::new();
    place.repository("shop");
    symlink(place.join("shop"), place.join("link")).unwrap();
    assert_eq!(place.identify("link"), place.identify("shop"));
    assert_eq!(place.identify("link/gone/deeper"), place.identify("shop"));
    let gone = ProjectId::of(Path::new("/no/such/folder"));
    assert_eq!((gone.key.as_str(), gone.label.as_str()), ("/no/such/folder", "folder"));
}

#[test]
fn damaged_repositories_still_give_a_project() {
    let place = Place::new();
    let outer = place.folder("outer");
    let label = |inner: &str| place.identify(inner).label;
    for content in ["", "gitdir:", "gitdir: /no/where", "\u{0}\u{1}", "gitdir: .."] {
        fs::write(outer.join(".git"), content).unwrap();
        assert_eq!(label("outer"), "outer", "{content:?}");
    }
    fs::remove_file(outer.join(".git")).unwrap();
    place.folder("outer/.git");
    assert_eq!(place.identify("outer").common_dir, None, "an empty .git is not a repository");
    fs::write(outer.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    place.folder("outer/.git/config");
    assert_eq!(place.identify("outer").key, outer.to_str().unwrap());
    fs::remove_dir(outer.join(".git/config")).unwrap();
    let pipe = Command::new("mkfifo").arg(outer.join(".git/config")).status().unwrap();
    assert!(pipe.success());
    assert_eq!(place.identify("outer").key, outer.to_str().unwrap(), "a pipe is not waited for");
}

#[test]
fn paths_of_other_systems_are_not_resolved() {
    let cases = [
        (r"C:\Users\ada\shop", "C:/Users/ada/shop", "shop"),
        (r"C:\Users\ada\shop\", "C:/Users/ada/shop", "shop"),
        (r"C:\ada\shop\.claude\worktrees\fix", "C:/ada/shop", "shop"),
        (r"D:\", "D:", "drive-D"),
        (r"\\server\share\shop", "//server/share/shop", "shop"),
        ("", "unknown-project", "unknown-project"),
        ("  ", "unknown-project", "unknown-project"),
    ];
    for (path, key, label) in cases {
        let found = ProjectId::of(Path::new(path));
        assert_eq!((found.key.as_str(), found.label.as_str()), (key, label), "{path}");
    }
}

#[test]
fn the_start_directory_takes_precedence_over_the_working_directory() {
    let place = Place::new();
    let (start, elsewhere) = (place.folder("start"), place.folder("elsewhere"));
    let cwd = elsewhere.to_str().unwrap();
    let started = Environment::fixed(&[("CLAUDE_PROJECT_DIR", start.to_str().unwrap())]);
    assert_eq!(identify(cwd, &started).label, "start");
    assert_eq!(identify(cwd, &Environment::fixed(&[])).label, "elsewhere");
}

#[test]
fn a_folder_that_a_program_names_is_redacted_before_it_is_cut_into_a_name() {
    let project = ProjectId::unseen("sftp://ada:hunter2@files.test");
    assert_eq!(project.label, "ada:[redacted:url-password]@files.test");
    assert!(!project.key.contains("hunter2"), "{}", project.key);
}
