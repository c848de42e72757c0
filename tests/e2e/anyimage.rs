//! Any image will do: one file and no shell, no C library, a C library from 2016, a user who is not root.
//!
//! Each is walked in the same way, with what the shell itself can do: such images have no other tools.

use std::path::Path;

use gateway_api::{
    Status,
    client::{Finished, ProcessEvent},
    stream::{Exit, Size},
};
use tests::{
    LIMIT, OrFail as _, Screen, World,
    engine::{self, LocalImage, put_busybox},
    old_glibc, wait_until, wait_until_agreed,
};

/// The most memory that an agent may take.
const AGENT_MAX_KB: u64 = 4 << 10;

/// An image and what is special about it.
struct Kind<'a> {
    reference: &'a str,
    /// What a command line begins with.
    prefix: &'a [&'a str],
    /// A terminal finds a shell.
    has_shell: bool,
    /// Who commands run as.
    user: (u32, u32),
}

impl Kind<'_> {
    fn argv<'a>(&'a self, argv: &[&'a str]) -> Vec<&'a str> {
        self.prefix.iter().chain(argv).copied().collect()
    }

    async fn run(&self, world: &World, script: &str) -> String {
        let argv = self.argv(&["sh", "-c", script]);
        let Finished { exit, stdout, stderr } =
            world.client().run("a1", &argv, b"").await.or_fail("run something");
        assert_eq!((&exit, &stderr[..]), (&Exit::Code(0), &b""[..]), "{script}");
        String::from_utf8_lossy(&stdout).trim().to_owned()
    }

    /// `berth create NAME --image … -- sh -c SCRIPT`
    async fn create_job(&self, world: &World, name: &str, script: &str) {
        let mut line = vec!["create", name, "--image", self.reference, "--"];
        line.extend(self.argv(&["sh", "-c", script]));
        world.berth(&line).await.succeeded();
    }

    async fn walk(&self) {
        let mut world = World::start().await;
        let create = ["create", "a1", "--image", self.reference, "--env", "FRUIT=two words", "--wait"];
        world.berth(&create).await.succeeded();
        self.runs_programs(&world).await;
        self.shows_a_terminal(&world).await;
        self.reaps(&world).await;
        self.runs_to_exit(&world).await;
        self.passes_signals_on(&world).await;

        self.links_again(&mut world).await;
        self.is_small(&world).await;
    }

    async fn runs_programs(&self, world: &World) {
        assert_eq!(self.run(world, "echo $FRUIT").await, "two words");
        let mut line = vec!["exec", "a1", "--"];
        line.extend(self.argv(&["sh", "-c", "read line; echo out $line; echo err >&2; exit 7"]));
        let ended = world.berth_with(&line, b"put in\n").await.ended(7);
        assert_eq!(ended, ("out put in\n".to_owned(), "err\n".to_owned()));
        let (_, said) = world.berth(&["exec", "a1", "--", "no-such-program"]).await.ended(127);
        assert!(said.contains("`no-such-program` is not in this image"), "{said}");

        let ids =
            "while read -r key id rest; do case $key in Uid:|Gid:) echo $id;; esac; done </proc/self/status";
        assert_eq!(self.run(world, ids).await, format!("{}\n{}", self.user.0, self.user.1));
        self.run(world, "echo mine >/userhome/x").await;
        assert_eq!(self.run(world, "read -r line </userhome/x; echo $line").await, "mine");
    }

    async fn shows_a_terminal(&self, world: &World) {
        if self.has_shell {
            let mut screen = Screen::attach(&world.client(), "a1", "main").await;
            screen.enter("echo sum-$((6*7))").await;
            screen.shows("sum-42").await;
            return;
        }
        let size = Size { cols: 80, rows: 24 };
        let mut process = world.client().terminal("a1", "main", size).await.or_fail("attach to a terminal");
        let event = tokio::time::timeout(LIMIT, process.output.next()).await.or_fail("hear from a terminal");
        match event {
            Some(Ok(ProcessEvent::Problem(problem))) => {
                assert!(problem.message.contains("this image has no shell"), "{problem}");
            }
            other => panic!("a terminal without a shell: {other:?}"),
        }
    }

    /// A thousand processes whose parents are gone, and not one is left.
    async fn reaps(&self, world: &World) {
        let orphans = "i=0; while [ $i -lt 1000 ]; do (: &); i=$((i+1)); done; echo $i";
        assert_eq!(self.run(world, orphans).await, "1000");
        let zombies = "n=0; for stat in /proc/[0-9]*/stat; do \
            { read -r line <$stat; } 2>/dev/null && case $line in *') Z '*) n=$((n+1));; esac; done; echo $n";
        wait_until_agreed("nothing is left of them", LIMIT, async || {
            match self.run(world, zombies).await.as_str() {
                "0" => Ok(()),
                left => Err(format!("{left} are left")),
            }
        })
        .await;
        self.is_small(world).await;
    }

    async fn runs_to_exit(&self, world: &World) {
        self.create_job(world, "good", "echo $0 done").await;
        self.create_job(world, "bad", "echo gone wrong >&2; exit 3").await;
        for (name, words) in [("good", "done"), ("bad", "gone wrong")] {
            let status = wait_until(&format!("`{name}` has ended"), LIMIT, async || {
                let status = world.client().instance(name).await.or_fail("show an instance").status;
                matches!(status, Status::Succeeded | Status::Failed { .. }).then_some(status)
            })
            .await;
            let as_expected = match name {
                "good" => status == Status::Succeeded,
                _ => matches!(status, Status::Failed { exit_code: Some(3), .. }),
            };
            assert!(as_expected, "`{name}`: {status:?}");
            let logs = world.berth(&["logs", name]).await.succeeded();
            assert!(logs.contains(words), "{logs}");
        }
    }

    async fn passes_signals_on(&self, world: &World) {
        let sleep = self.argv(&["sleep", "0.1"]).join(" ");
        let script = format!("trap 'echo told; exit 4' TERM; echo ready; while :; do {sleep}; done");
        self.create_job(world, "polite", &script).await;
        wait_until("it is ready", LIMIT, async || {
            let logs = world.berth(&["logs", "polite"]).await;
            logs.stdout.contains("ready").then_some(())
        })
        .await;
        world.berth(&["stop", "polite", "--wait"]).await.succeeded();
        let status = world.client().instance("polite").await.or_fail("show an instance").status;
        assert_eq!(status, Status::Stopped { exit_code: Some(4) });
        let logs = world.berth(&["logs", "polite"]).await.succeeded();
        assert!(logs.contains("told\n"), "{logs}");
    }

    async fn links_again(&self, world: &mut World) {
        world.kill_gateway();
        world.kill_envd();
        world.start_gateway().await;
        let argv = self.argv(&["sh", "-c", "echo linked again"]);
        let said = wait_until("the agent has linked again", LIMIT, async || {
            world.client().run("a1", &argv, b"").await.ok()
        })
        .await;
        assert_eq!((&said.exit, &said.stdout[..]), (&Exit::Code(0), &b"linked again\n"[..]));
        world.start_envd().await;
    }

    /// What is this agent's own, and its share of what it has in common with others.
    async fn is_small(&self, world: &World) {
        let id = world.client().instance("a1").await.or_fail("show an instance").id;
        let memory = format!("/proc/{}/smaps_rollup", engine::first_process(id.as_str()));
        let memory = std::fs::read_to_string(memory).or_fail("look at the agent's memory");
        let kb = memory.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"));
        let kb: u64 = kb.or_fail("find the agent's memory").parse().or_fail("read a number");
        assert!(kb <= AGENT_MAX_KB, "the agent takes {kb} kB");
    }
}

/// An empty root directory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir().or_fail("make a directory")
}

fn put_accounts(root: &Path) {
    std::fs::create_dir_all(root.join("etc")).or_fail("make a directory");
    let passwd = "root:x:0:0:root:/root:/bin/sh\nana:x:1000:1000::/home/ana:/bin/sh\n";
    std::fs::write(root.join("etc/passwd"), passwd).or_fail("write the accounts");
}

#[tokio::test]
async fn an_image_with_one_file_and_no_shell() {
    let root = directory();
    put_busybox(root.path(), "busybox", &[]);
    let image = LocalImage::of_directory("one-file", root.path(), &[]);
    let kind = Kind { reference: image.reference(), prefix: &["/busybox"], has_shell: false, user: (0, 0) };
    kind.walk().await;
}

#[tokio::test]
async fn an_image_without_a_c_library() {
    let root = directory();
    put_busybox(root.path(), "bin/busybox", &["sh", "cat", "echo", "sleep"]);
    put_accounts(root.path());
    let image = LocalImage::of_directory("no-libc", root.path(), &[]);
    Kind { reference: image.reference(), prefix: &[], has_shell: true, user: (0, 0) }.walk().await;
}

#[tokio::test]
async fn an_image_whose_user_is_not_root() {
    let root = directory();
    put_busybox(root.path(), "bin/busybox", &["sh", "cat", "echo", "sleep"]);
    put_accounts(root.path());
    let changes = ["USER 1000:1000", "WORKDIR /tmp"];
    let image = LocalImage::of_directory("not-root", root.path(), &changes);
    Kind { reference: image.reference(), prefix: &[], has_shell: true, user: (1000, 1000) }.walk().await;
}

#[tokio::test]
async fn an_image_with_a_c_library_of_2016() {
    let Some(archive) = old_glibc() else { return };
    let image = LocalImage::of_archive("old-glibc", &archive, &[]);
    Kind { reference: image.reference(), prefix: &[], has_shell: true, user: (0, 0) }.walk().await;
}

/// What is built on another base than the one that was asked for would carry its name.
#[test]
fn a_base_that_was_asked_for_is_never_replaced() {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../images/build.sh");
    let mut build = std::process::Command::new(build);
    // Nothing listens there.
    build.arg("base").env("BERTH_BASE", "127.0.0.1:1/none:1").env("BERTH_TAG", "of-no-base");
    let ended = build.output().or_fail("run a script");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && said.contains("BERTH_BASE asks for it"), "{said}");
}
