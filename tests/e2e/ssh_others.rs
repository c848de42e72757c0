//! The clients of `PuTTY` and of Dropbear: commands, terminals, files and forwards, whatever the image holds.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::Command,
};

use tests::{LIMIT, Laptop, OrFail as _, Port, Talk, World, wait_until};

/// What a port of the laptop says to everybody.
pub(crate) const ANSWER: &str = "from the laptop\n";

/// A family of clients at the door of `train`.
struct Family<'a> {
    laptop: &'a Laptop<'a>,
    /// What stands before a command where there is no shell to find it.
    prefix: &'a str,
    /// The client with all that it needs to get in, up to the options of one call.
    client: &'a dyn Fn() -> Command,
    /// The option that makes a channel to a port of its standard input and output.
    to_port: &'a str,
}

/// Both families, one after the other.
pub(crate) async fn walk(world: &World, laptop: &Laptop<'_>, prefix: &str, content: &[u8]) {
    putty(world, laptop, prefix, content).await;
    dropbear(laptop, prefix, content).await;
}

async fn putty(world: &World, laptop: &Laptop<'_>, prefix: &str, content: &[u8]) {
    let fingerprint = host_fingerprint(laptop).await;
    let putty = |program: &str| {
        let mut command = Command::new(program);
        command.args(["-batch", "-P", &laptop.port(), "-hostkey", &fingerprint]);
        command.args(["-pw", world.password()]).env("PUTTYDIR", laptop.folder());
        command.current_dir(laptop.folder());
        command
    };
    let client = || {
        let mut plink = putty("plink");
        plink.arg("-no-antispoof");
        plink
    };
    let family = Family { laptop, prefix, client: &client, to_port: "-nc" };
    family.commands().await;
    family.forwards().await;
    socks(&family, "-D").await;

    let mut psftp = putty("psftp");
    let script = "cd /userhome\nmkdir p\nput up p/a\nren p/a p/b\nchmod 600 p/b\nget p/b psftp-down\ndel p/b\nrmdir p\nquit\n";
    std::fs::write(laptop.path("script"), script).or_fail("write a script");
    psftp.args(["-b", "script"]).arg(laptop.address("train"));
    laptop.run(psftp, b"").await.succeeded();
    assert!(std::fs::read(laptop.path("psftp-down")).or_fail("read a file") == content, "psftp");
    let there = format!("{}:/userhome/pscp", laptop.address("train"));
    for (from, to) in [("up", there.as_str()), (there.as_str(), "pscp-down")] {
        let mut pscp = putty("pscp");
        pscp.args(["-q", from, to]);
        laptop.run(pscp, b"").await.succeeded();
    }
    assert!(std::fs::read(laptop.path("pscp-down")).or_fail("read a file") == content, "pscp");
}

async fn dropbear(laptop: &Laptop<'_>, prefix: &str, content: &[u8]) {
    let mut convert = Command::new("dropbearconvert");
    convert.args(["openssh", "dropbear"]).arg(laptop.path("key")).arg(laptop.path("dropbear"));
    laptop.run(convert, b"").await.succeeded();
    // It looks for known hosts in the home, and takes a comment for a part of the key.
    let home = laptop.path("home");
    std::fs::create_dir_all(home.join(".ssh")).or_fail("make a directory");
    let known = std::fs::read_to_string(laptop.path("known_hosts")).or_fail("read known_hosts");
    let key: Vec<_> = known.split_whitespace().skip(1).take(2).collect();
    let line = format!("127.0.0.1 {}\n", key.join(" "));
    std::fs::write(home.join(".ssh/known_hosts"), line).or_fail("write known_hosts");
    let client = || {
        let mut dbclient = Command::new("dbclient");
        dbclient.arg("-i").arg(laptop.path("dropbear")).args(["-p", &laptop.port()]).env("HOME", &home);
        dbclient
    };
    let family = Family { laptop, prefix, client: &client, to_port: "-B" };
    family.commands().await;
    family.forwards().await;

    // It has no SFTP of its own, and carries that of others.
    let carrier = laptop.path("dropbear-sftp");
    let (key, address) = (laptop.path("dropbear"), laptop.address("train"));
    let script = format!(
        "#!/bin/sh\nHOME='{}' exec dbclient -T -i '{}' -p {} -s {address} sftp\n",
        home.display(),
        key.display(),
        laptop.port()
    );
    std::fs::write(&carrier, script).or_fail("write a program");
    std::fs::set_permissions(&carrier, std::fs::Permissions::from_mode(0o700)).or_fail("make it run");
    let mut sftp = Command::new("sftp");
    sftp.arg("-D").arg(&carrier).args(["-q", "-b", "-"]).current_dir(laptop.folder());
    let steps = b"put up /userhome/dropbear\nget /userhome/dropbear dropbear-down\nrm /userhome/dropbear\n";
    laptop.run(sftp, steps).await.succeeded();
    assert!(std::fs::read(laptop.path("dropbear-down")).or_fail("read a file") == content, "dbclient");
}

impl Family<'_> {
    fn with(&self, options: &[&str], command: &[&str]) -> Command {
        let mut client = (self.client)();
        client.args(options).arg(self.laptop.address("train")).args(command);
        client
    }

    async fn commands(&self) {
        let laptop = self.laptop;
        let ran = laptop.run(self.with(&["-T"], &["echo out; echo err >&2; exit 3"]), b"").await;
        if self.prefix.is_empty() {
            let (out, err) = ran.ended(3);
            // One of them tells besides how it signed in.
            assert!(out == "out\n" && err.ends_with("err\n"), "{out} {err}");
            let mut shell = Talk::start(at_a_terminal(&self.with(&["-t"], &[])));
            shell.types("test -t 0 && echo in-$((6*7))\r").await;
            shell.shows("in-42").await;
            shell.types("exit 6\r").await;
            assert_eq!(shell.ends().await, Some(6));
        } else {
            assert!(ran.ended(255).1.contains("no shell"));
        }
        let is_terminal = format!("{}test -t 0", self.prefix);
        laptop.run(at_a_terminal(&self.with(&["-t"], &[&is_terminal])), b"").await.ended(0);
        laptop.run(self.with(&["-T"], &[&is_terminal]), b"").await.ended(1);
        let back = laptop.run(self.with(&["-T"], &[&format!("{}cat", self.prefix)]), ANSWER.as_bytes()).await;
        assert_eq!(back.succeeded(), ANSWER);
    }

    /// From a port inside to the laptop, and to that port by a channel and by a port of the laptop.
    async fn forwards(&self) {
        let (inside, here) = (7010, Port::reserve());
        let back = format!("{inside}:127.0.0.1:{}", answers());
        let _back = Talk::start(self.with(&["-N", "-R", &back], &[]));
        let target = format!("127.0.0.1:{inside}");
        let answered = wait_until("the port inside answers", LIMIT, async || {
            let asks = self.with(&[self.to_port, &target], &[]);
            Some(self.laptop.run(asks, b"").await.stdout).filter(|answer| !answer.is_empty())
        })
        .await;
        assert_eq!(answered, ANSWER);
        let local = format!("{here}:{target}");
        let _local = Talk::start(self.with(&["-N", "-L", &local], &[]));
        let answered = wait_until("a port of the laptop answers", LIMIT, async || {
            let mut stream = TcpStream::connect(("127.0.0.1", here.number)).ok()?;
            Some(all_of(&mut stream)).filter(|answer| !answer.is_empty())
        })
        .await;
        assert_eq!(answered, ANSWER);
    }
}

/// The client at a terminal of its own, which some want before they ask for one on the other side.
fn at_a_terminal(client: &Command) -> Command {
    let words = std::iter::once(client.get_program()).chain(client.get_args());
    let quoted: Vec<_> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &quoted.join(" "), "/dev/null"]);
    script.envs(client.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script
}

/// A proxy of the client's, by which a port inside is reached that leads back to the laptop.
async fn socks(family: &Family<'_>, option: &str) {
    let (inside, proxy) = (7011, Port::reserve());
    let back = format!("{inside}:127.0.0.1:{}", answers());
    let _proxy = Talk::start(family.with(&["-N", option, &proxy.to_string(), "-R", &back], &[]));
    let answered = wait_until("the proxy answers", LIMIT, async || {
        through_socks(proxy.number, inside).filter(|answer| !answer.is_empty())
    })
    .await;
    assert_eq!(answered, ANSWER);
}

/// What a port of the loopback says that a SOCKS proxy on this machine leads to.
pub(crate) fn through_socks(proxy: u16, port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy)).ok()?;
    stream.set_read_timeout(Some(LIMIT)).or_fail("set a limit");
    stream.write_all(&[5, 1, 0]).ok()?;
    stream.read_exact(&mut [0; 2]).ok()?;
    let [high, low] = port.to_be_bytes();
    stream.write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low]).ok()?;
    stream.read_exact(&mut [0; 10]).ok()?;
    Some(all_of(&mut stream))
}

fn all_of(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(LIMIT)).or_fail("set a limit");
    let mut answer = String::new();
    let _or_reset = stream.read_to_string(&mut answer);
    answer
}

/// A port of the laptop where everybody gets an answer, for as long as the test lives.
pub(crate) fn answers() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").or_fail("listen");
    let port = listener.local_addr().or_fail("find a port").port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _or_gone = stream.write_all(ANSWER.as_bytes());
        }
    });
    port
}

async fn host_fingerprint(laptop: &Laptop<'_>) -> String {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-l", "-f"]).arg(laptop.path("known_hosts"));
    let told = laptop.run(keygen, b"").await.succeeded();
    told.split(' ').nth(1).or_fail("find the fingerprint").to_owned()
}
