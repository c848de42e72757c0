//! Releases: `make.sh` packs and signs one, `download.sh` verifies it before any program changes.

use std::{
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output},
};

use tests::{LIMIT, OrFail as _, Port, engine, wait_until};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

/// Sorted, as a folder lists them.
const PROGRAMS: [&str; 4] = ["berth", "envd", "envd-agent", "gateway"];
const ARCHIVE: &str = "berth-v0.1.0-x86_64-linux.tar.gz";

/// Begins all shell commands of these tests, which run in the published folder of `v0.1.0`.
const SHELL: &str = r#"set -eu
sign() { ssh-keygen -q -Y sign -f "$1" -n "${2:-berth-release}" <SHA256SUMS >SHA256SUMS.sig; }
seal() { sha256sum "$ARCHIVE" >SHA256SUMS; sign ../../key; }
unpack() { mkdir ../../unpacked; tar -xzf "$ARCHIVE" -C ../../unpacked; }
pack() { tar -czPf "$ARCHIVE" -C ../../unpacked "$@"; seal; }
programs() {
  for name in berth envd envd-agent gateway; do
    printf '#!/bin/sh\necho "%s %s"\n' $name "$2" >"$1/$name"
    chmod 755 "$1/$name"
  done
}
"#;

/// A checkout at a tag whose `signers` hold a throw-away key, older programs in `bin`, and a web server for releases.
struct Site {
    folder: tempfile::TempDir,
    url: String,
    _server: JoinSet<()>,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().or_fail("make a directory");
        let listener = TcpListener::bind("127.0.0.1:0").await.or_fail("listen");
        let url = format!("http://{}", listener.local_addr().or_fail("see the port"));
        let mut server = JoinSet::new();
        server.spawn(serve(listener, folder.path().join("site")));
        let site = Self { folder, url, _server: server };
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("deploy").join("release");
        std::fs::create_dir_all(site.at("site/v0.1.0")).or_fail("make a directory");
        site.shell(&format!(
            r#"cd ../..
            mkdir -p tree/deploy built bin
            cp -r '{}' tree/deploy/release
            for name in key stranger; do ssh-keygen -q -t ed25519 -N '' -C "$name" -f $name; done
            echo "release namespaces=\"berth-release\" $(cat key.pub)" >tree/deploy/release/signers
            programs built 0.1.0
            programs bin 'of before'
            cd tree
            git init -q
            git add .
            git commit -qm first
            git tag v0.1.0"#,
            scripts.display()
        ));
        site
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.at("site/v0.1.0")).env("BERTH_BIN", self.at("built")).env("no_proxy", "*");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("ARCHIVE", ARCHIVE);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "release")
                .env(format!("GIT_{who}_EMAIL"), "release@example.org");
        }
        command
    }

    /// Runs shell commands in the folder of release `v0.1.0`.
    #[track_caller]
    fn shell(&self, commands: &str) {
        let done = self.command(Path::new("/bin/sh")).args(["-c", &format!("{SHELL}{commands}")]).output();
        let done = done.or_fail("run a shell");
        assert!(done.status.success(), "{commands}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Runs `make.sh`, which writes into folder `out` of the web server.
    fn make(&self, tag: &str, key: &str, out: &str) -> Output {
        let mut command = self.command(&self.at("tree/deploy/release/make.sh"));
        command.arg(tag).arg(self.at(key)).arg(self.at("site").join(out));
        command.output().or_fail("run make.sh")
    }

    /// Publishes `v0.1.0` in place of the files that are there.
    #[track_caller]
    fn publish(&self) {
        let made = self.make("v0.1.0", "key", "v0.1.0");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Runs `download.sh` and returns its exit code and messages.
    async fn download(&self, settings: &[(&str, &str)]) -> (Option<i32>, String) {
        let mut command = self.command(&self.at("tree/deploy/release/download.sh"));
        command.arg(self.at("bin")).env("BERTH_RELEASES", &self.url).envs(settings.iter().copied());
        let done = tokio::process::Command::from(command).output().await.or_fail("run download.sh");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// Runs `download.sh` and expects the four programs of `built`.
    async fn downloads(&self) {
        let (code, said) = self.download(&[]).await;
        assert_eq!(code, Some(0), "{said}");
        for name in PROGRAMS {
            assert_eq!(read(&self.at("bin").join(name)), read(&self.at("built").join(name)), "{name}");
            let mode =
                std::fs::metadata(self.at("bin").join(name)).or_fail("look at a program").permissions();
            assert_eq!(mode.mode() & 0o7777, 0o755, "{name}");
        }
    }

    /// Runs `download.sh` and expects this exit code and message, and the older programs in `bin`.
    async fn refuses(&self, what: &str, settings: &[(&str, &str)], code: i32, words: &str) {
        let (ended, said) = self.download(settings).await;
        assert!(ended == Some(code) && said.contains(words), "{what}: {ended:?}: {said}");
        assert_eq!(list(&self.at("bin")), PROGRAMS, "{what}");
        for name in PROGRAMS {
            let program = read(&self.at("bin").join(name));
            assert!(program.contains("of before"), "{what}: {name} is {program}");
        }
    }
}

#[tokio::test]
async fn release_of_the_checked_out_tag_is_downloaded_once() {
    let site = Site::new().await;
    site.publish();
    site.downloads().await;

    // A restart does not need the network. A program that was compiled since is replaced.
    site.shell("rm *");
    site.downloads().await;
    site.shell("echo '# compiled' >>../../bin/berth");
    let (code, said) = site.download(&[]).await;
    assert_eq!(code, Some(6), "{said}");
    site.publish();
    site.downloads().await;

    // A program may name its commit.
    site.shell("cd ../..; programs built \"0.1.0 ($(git -C tree rev-parse --short HEAD))\"; rm bin/*");
    site.publish();
    site.downloads().await;
}

#[tokio::test]
async fn spoilt_release_is_refused_and_the_programs_stay() {
    let site = Site::new().await;
    // Fault, command that causes it, exit code, part of the message.
    let cases = [
        ("changed checksums", "echo >>SHA256SUMS", 7, "is not valid"),
        ("signature by a stranger", "sign ../../stranger", 7, "is not valid"),
        ("signature for another purpose", "sign ../../key file", 7, "is not valid"),
        ("malformed signature", "echo none >SHA256SUMS.sig", 7, "is not valid"),
        ("missing checksums", "rm SHA256SUMS", 6, "SHA256SUMS: it does not exist (HTTP 404)"),
        ("missing signature", "rm SHA256SUMS.sig", 6, "SHA256SUMS.sig: it does not exist (HTTP 404)"),
        ("missing archive", "rm $ARCHIVE", 6, "tar.gz: it does not exist (HTTP 404)"),
        ("oversized checksums", "head -c 100000 /dev/zero >SHA256SUMS", 6, "larger than 65536 bytes"),
        ("changed archive", "echo >>$ARCHIVE", 8, "checksum"),
        ("archive named twice", "sed -i p SHA256SUMS; sign ../../key", 8, "2 times"),
        ("malformed archive", "echo >$ARCHIVE; seal", 9, "exactly the files"),
        ("missing program", "unpack; pack berth envd envd-agent", 9, "exactly the files"),
        (
            "extra file",
            "unpack; touch ../../unpacked/more; pack berth envd envd-agent gateway more",
            9,
            "exactly",
        ),
        ("duplicate program", "unpack; pack berth envd envd-agent gateway gateway", 9, "exactly"),
        (
            "symbolic link",
            "unpack; ln -sf /bin/sh ../../unpacked/gateway; pack berth envd envd-agent gateway",
            9,
            "exactly the files",
        ),
        (
            "hard link",
            "unpack; ln -f ../../unpacked/envd ../../unpacked/gateway; pack berth envd envd-agent gateway",
            9,
            "exactly the files",
        ),
        (
            "path traversal",
            "unpack; pack berth envd envd-agent --transform 's,^gateway,../../escaped,' gateway",
            9,
            "exactly the files",
        ),
        (
            "absolute path",
            "unpack; pack berth envd envd-agent \"$(realpath ../../unpacked/gateway)\"",
            9,
            "exactly the files",
        ),
        (
            "programs of another version",
            "unpack; programs ../../unpacked 0.2.0; pack berth envd envd-agent gateway",
            10,
            "`berth --version` of ",
        ),
        (
            "programs of another commit",
            "unpack; programs ../../unpacked '0.1.0 (0123456)'; pack berth envd envd-agent gateway",
            10,
            "says `berth 0.1.0 (0123456)`",
        ),
    ];
    for (fault, spoil, code, words) in cases {
        site.publish();
        site.shell(spoil);
        site.refuses(fault, &[], code, words).await;
        site.shell("rm -rf ../../unpacked");
    }
}

#[tokio::test]
async fn older_release_does_not_pass_for_a_newer_one() {
    let site = Site::new().await;
    site.publish();
    site.shell(
        "cp -r . ../v0.2.0; mv ../v0.2.0/$ARCHIVE ../v0.2.0/berth-v0.2.0-x86_64-linux.tar.gz
        cd ../../tree; git commit -q --allow-empty -m second; git tag v0.2.0",
    );
    site.refuses("older release", &[], 8, "names berth-v0.2.0-x86_64-linux.tar.gz 0 times").await;
    site.shell("sed -i s/v0.1.0/v0.2.0/ ../v0.2.0/SHA256SUMS");
    site.refuses("renamed older release", &[], 7, "is not valid").await;
}

#[tokio::test]
async fn checkout_without_a_release_names_the_reason() {
    let site = Site::new().await;
    site.publish();
    for url in
        ["", "file:///releases", "ftp://example.org", "https://user@example.org", "https://example.org/?a"]
    {
        let settings = [("BERTH_RELEASES", url)];
        site.refuses("wrong URL", &settings, 64, &format!("BERTH_RELEASES is `{url}`")).await;
    }
    site.shell(
        "mkdir ../../other; cd ../../other; printf '#!/bin/sh\\necho riscv64\\n' >uname; chmod 755 uname",
    );
    let inherited = std::env::var("PATH").or_fail("read PATH");
    let path = format!("{}:{inherited}", site.at("other").display());
    site.refuses("another architecture", &[("PATH", &path)], 5, "architecture riscv64").await;

    site.shell("cd ../../tree; git commit -q --allow-empty -m second; git tag nightly");
    let head =
        Command::new("git").arg("-C").arg(site.at("tree")).args(["rev-parse", "--short", "HEAD"]).output();
    let head = String::from_utf8(head.or_fail("run git").stdout).or_fail("read a commit");
    let words = format!("commit {} has no release tag", head.trim());
    site.refuses("no tag", &[], 3, &words).await;
    site.shell("cd ../../tree; git tag v1; echo '# none yet' >deploy/release/signers");
    site.refuses("tag without a version", &[], 3, "is not a version").await;
    site.shell("cd ../../tree; git tag -d v1; git tag v0.2.0");
    site.refuses("no key", &[], 4, "This tree names no release key").await;
    site.shell("rm -rf ../../tree/.git");
    site.refuses("no checkout", &[], 3, "git finds no commit").await;
}

#[tokio::test]
async fn release_needs_a_signer_and_the_programs_of_its_tag() {
    let site = Site::new().await;
    site.publish();
    assert_eq!(list(&site.at("site/v0.1.0")), ["SHA256SUMS", "SHA256SUMS.sig", ARCHIVE]);
    // Times and owners of files leave no trace.
    site.shell("touch -d yesterday ../../built/*; chmod 700 ../../built/*");
    assert!(site.make("v0.1.0", "key", "again").status.success());
    site.shell("for file in *; do cmp $file ../again/$file; done");

    let refuses = |tag: &str, key: &str, words: &str| {
        let made = site.make(tag, key, "refused");
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.code() == Some(1) && said.contains(words), "{said}");
        let out = site.at("site/refused");
        assert!(!out.exists() || list(&out).is_empty(), "{words}");
    };
    refuses("v0.1.0", "stranger", "not in deploy/release/signers");
    refuses("v0.1.0", "key.pub.pub", "key.pub.pub");
    refuses("latest", "key", "not a version");
    refuses("v0.2.0", "key", "no such tag");
    for version in ["0.2.0", "0.1.0 (0123456)", "0.1.0-dirty"] {
        site.shell(&format!("programs ../../built '{version}'"));
        refuses("v0.1.0", "key", &format!("`berth --version` says `berth {version}`"));
    }
    site.shell("programs ../../built 0.1.0; rm ../../built/envd-agent");
    refuses("v0.1.0", "key", "there is no program");
    site.shell("cd ../../tree; git commit -q --allow-empty -m second");
    refuses("v0.1.0", "key", "another commit is checked out");
}

#[tokio::test]
async fn programs_say_their_version_and_commit_as_releases_expect() {
    for name in ["berth", "envd", "gateway"] {
        let said = Command::new(tests::programs().join(name)).arg("--version").output();
        let said = String::from_utf8(said.or_fail("ask for the version").stdout).or_fail("read the version");
        let version = said.trim_end().strip_prefix(&format!("{name} 0.1.0"));
        let commit = version.or_fail(format!("find the version in `{said}`"));
        let is_commit = |text: &str| text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let commit = commit.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
        let commit = commit.or_fail(format!("find the commit in `{said}`"));
        assert!(is_commit(commit.trim_end_matches("-dirty")), "{said}");
    }
}

/// `make up` in a checkout of a release.
struct Up<'a> {
    site: &'a Site,
    ports: [Port; 4],
    running: Option<Child>,
}

impl<'a> Up<'a> {
    fn new(site: &'a Site) -> Self {
        let ports = [(); 4].map(|()| Port::reserve());
        // Nobody else takes the registry's port meanwhile.
        std::fs::create_dir_all(site.at("data/registry")).or_fail("make a directory");
        std::fs::write(site.at("data/registry/address"), format!("127.0.0.1:{}\n", ports[3]))
            .or_fail("choose the registry's port");
        Self { site, ports, running: None }
    }

    fn make(&self, target: &str) -> Command {
        let mut command = self.site.command(Path::new("make"));
        command.arg(target).current_dir(self.site.at("tree")).env_remove("BERTH_BIN");
        command.env("BERTH_RELEASES", &self.site.url).env("BERTH_DATA", self.site.at("data"));
        for (name, port) in ["BERTH_HTTP", "BERTH_APPS", "BERTH_SSH"].iter().zip(&self.ports) {
            command.env(name, format!("127.0.0.1:{port}"));
        }
        command
    }

    /// Starts it and returns what it prints about the console.
    async fn start(&mut self) -> String {
        let (out, said) = (self.site.at("out"), self.site.at("said"));
        let into = |path: &Path| std::fs::File::create(path).or_fail("make a file");
        let running = self.make("up").stdout(into(&out)).stderr(into(&said)).spawn();
        let running = self.running.insert(running.or_fail("run `make up`"));
        wait_until("the console's address is printed", 3 * LIMIT, async || {
            let ended = running.try_wait().or_fail("look at `make up`");
            assert!(ended.is_none(), "`make up` ended: {}", read(&said));
            Some(read(&out)).filter(|text| text.contains("Password "))
        })
        .await
    }

    fn berth(&self, arguments: &[&str], input: &str) -> String {
        std::fs::write(self.site.at("input"), input).or_fail("write the input");
        let mut command = self.site.command(&tests::programs().join("berth"));
        command.args(arguments).env("BERTH_CONFIG", self.site.at("config.toml"));
        command.stdin(std::fs::File::open(self.site.at("input")).or_fail("open the input"));
        let done = command.output().or_fail("run berth");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "berth {}: {said}", arguments.join(" "));
        String::from_utf8(done.stdout).or_fail("read what berth says")
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        let down = self.make("down").output().or_fail("run `make down`");
        if let Some(mut running) = self.running.take() {
            let _ = running.wait();
        }
        let cluster = std::fs::read_to_string(self.site.at("data/cluster")).unwrap_or_default();
        let left = engine::remove_all(Path::new(engine::SOCKET), cluster.trim());
        let purged = Command::new(tests::programs().join("envd"))
            .arg("purge")
            .env("BERTH_DATA", self.site.at("data"))
            .output()
            .or_fail("run envd");
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "{}", read(&self.site.at("said")));
        } else {
            assert!(
                down.status.success() && left.is_empty() && purged.status.success(),
                "{left:?} {purged:?}"
            );
        }
    }
}

#[tokio::test]
async fn make_up_runs_the_release_of_the_checked_out_tag() {
    let site = Site::new().await;
    let programs = tests::programs();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("");
    site.shell(&format!(
        r#"cd ../../tree
        cp -r '{root}/Makefile' '{root}/images' .
        cp -r '{root}/deploy/up' deploy
        git add .
        git commit -qm second
        git tag -f v0.1.0
        cd ../built
        for name in berth envd gateway; do
          printf '#!/bin/sh\n[ "$1" != --version ] || exec echo %s 0.1.0\nexec "%s/%s" "$@"\n' \
            $name '{programs}' $name >$name
        done
        cp '{programs}/envd-agent' ."#,
        root = root.display(),
        programs = programs.display(),
    ));
    site.publish();
    let mut up = Up::new(&site);
    let told = up.start().await;
    let value = |name: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(name));
        line.or_fail(format!("find {name} in {told}")).trim().to_owned()
    };
    let password = value("Password ");
    up.berth(&["login", &value("Console "), "-u", "admin", "--password-stdin"], &password);
    up.berth(&["passwd"], &format!("{password}\nCorrect-horse-7-battery\n"));
    up.berth(&["create", "first", "--memory", "64M", "--wait"], "");
    assert_eq!(up.berth(&["exec", "first", "--", "echo", "here"], ""), "here\n");
}

/// Serves the files of a folder, one request at a time.
async fn serve(listener: TcpListener, folder: PathBuf) {
    loop {
        let (mut peer, _) = listener.accept().await.or_fail("be asked");
        let mut asked = [0; 1024];
        let length = peer.read(&mut asked).await.or_fail("read a request");
        let asked = String::from_utf8_lossy(&asked[..length]);
        let path = asked.split(' ').nth(1).or_fail("find the path of a request");
        let (status, file) = match std::fs::read(folder.join(path.trim_start_matches('/'))) {
            Ok(file) => ("200 OK", file),
            Err(_) => ("404 Not Found", Vec::new()),
        };
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", file.len());
        // A client that finds the file too large hangs up.
        let _ = peer.write_all(&[head.into_bytes(), file].concat()).await;
    }
}

/// The names in a folder, sorted.
fn list(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).or_fail(format!("list {}", folder.display()));
    let mut names: Vec<_> = entries
        .map(|entry| entry.or_fail("read a folder").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).or_fail(format!("read {}", path.display()))
}
