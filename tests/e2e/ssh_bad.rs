//! What must not be possible through the SSH door, and what it must survive.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use gateway_api::{
    CreateInstance, Instance, InstanceId, Status, audit::AuditQuery, client::Client, stream::Exit,
};
use tests::{IMAGE, LIMIT, Laptop, OrFail as _, Talk, World, count, engine, wait_until, wait_until_agreed};

/// What was revoked is closed within 5 s; a busy machine gets four times as long.
const REVOKED_LIMIT: Duration = Duration::from_secs(4 * 5);

async fn world() -> World {
    let world = World::start().await;
    world.berth(&["create", "train", "--image", IMAGE, "--wait"]).await.succeeded();
    world
}

/// Somebody's instance that runs.
async fn make(client: &Client, wanted: &CreateInstance) -> InstanceId {
    let id = client.create_instance(wanted).await.or_fail("create an instance").id;
    let runs = |instance: &Instance| matches!(instance.status, Status::Running { .. });
    client.wait_until(&id, LIMIT, runs, |_| ()).await.or_fail("wait until it runs");
    id
}

/// The gateway lives, nothing in it has panicked, and who does it right gets in.
async fn is_unharmed(world: &World, laptop: &Laptop<'_>) {
    assert_eq!(laptop.ssh("train", &["echo in"]).await.succeeded(), "in\n");
    world.gateway_has_not_panicked();
}

/// The refused lines of the audit log with that act.
async fn refusals(world: &World, act: &str) -> Vec<String> {
    let query = AuditQuery { act: Some(act.to_owned()), ..AuditQuery::default() };
    let page = world.client().audit(&query).await.or_fail("read the audit log");
    let refused = page.items.into_iter().filter(|entry| entry.result.word() == "refused");
    refused.map(|entry| format!("{} {} {:?}", entry.actor, entry.object, entry.details)).collect()
}

/// Waits until a refusal that says so is in the audit log; how many there are.
async fn is_written_down(world: &World, what: &str) -> usize {
    wait_until(&format!("`{what}` is written down"), LIMIT, async || {
        let told = refusals(world, "access").await;
        Some(told.iter().filter(|line| line.contains(what)).count()).filter(|count| *count > 0)
    })
    .await
}

#[tokio::test]
async fn who_is_not_known_is_told_nothing_and_written_down() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let alice = world.person("alice").await;
    let stranger = Laptop::new(&world).await;

    // The same words whether the user or the password is wrong.
    let mut answers = Vec::new();
    for login in ["nobody+train", "admin+train", "admin+../train", "admin"] {
        let (_, said) = stranger.ssh_password(login, "wrong", &[], &["true"]).await.ended(255);
        answers.push(said.replace(login, "LOGIN"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    // A login that names nobody is written down without a name: what it holds may be a password.
    wait_until_agreed("both are written down", LIMIT, async || {
        let told = refusals(&world, "sign_in").await;
        let named = told.iter().any(|line| line.starts_with("nobody "));
        let nameless = told.iter().any(|line| line.starts_with("  ") && !line.contains(".."));
        if named && nameless { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;

    // A key that nobody knows: one line for the connection, with the key in it.
    stranger.ssh("train", &["true"]).await.ended(255);
    let fingerprint = fingerprint(&stranger);
    wait_until("the refused key is written down", LIMIT, async || {
        let told = refusals(&world, "sign_in").await;
        told.iter().any(|line| line.contains(&fingerprint)).then_some(())
    })
    .await;

    // Somebody else's instance and one that is not there read alike, and both are written down.
    let mut theirs = Laptop::new(&world).await;
    theirs.user = "alice".to_owned();
    theirs.register_with(&alice, "key").await;
    let id = world.client().instance("train").await.or_fail("show an instance").id.to_string();
    let other = format!("{}0", &id[..id.len() - 1]);
    let mut answers = Vec::new();
    for target in [id.as_str(), other.as_str(), "train", "no-such"] {
        let (_, said) = theirs.ssh(target, &["true"]).await.ended(255);
        answers.push(said.replace(target, "TARGET"));
        // Forwards ask for themselves.
        let mut forward = theirs.ssh_as(&format!("alice+{target}"), &["-W", "127.0.0.1:22"]);
        forward.stdin(std::process::Stdio::null());
        theirs.run(forward, b"").await.ended(255);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    wait_until_agreed("it is written down", LIMIT, async || {
        let told = refusals(&world, "access").await;
        let is_told = told.iter().any(|line| line.starts_with(&format!("alice ssh {id}")));
        if is_told { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
    is_unharmed(&world, &laptop).await;
}

/// Whoever guesses is held up, also with what is right at last; the owner's key opens all the while.
#[tokio::test]
async fn guesses_are_limited_and_keep_no_owner_out() {
    /// One less than may be wrong in a minute.
    const BY_API: usize = 9;
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let stranger = Laptop::new(&world).await;
    let (alice, password) = world.person_and_password("alice").await;
    let mut theirs = Laptop::new(&world).await;
    theirs.user = "alice".to_owned();
    theirs.register_with(&alice, "key").await;
    make(&alice, &tests::wanted("web")).await;

    assert_eq!(stranger.ssh_password("alice+web", &password, &[], &["echo in"]).await.succeeded(), "in\n");
    // API and SSH share one limit. Guesses through the API are made at once: `ssh` is slow, and a minute passes.
    let api = Client::new(world.console(), None).or_fail("make a client");
    for guess in join_all((0..BY_API).map(|_| api.sign_in("alice", "a guess"))).await {
        guess.err().or_fail("be refused");
    }
    stranger.ssh_password("alice+web", "a guess", &[], &["true"]).await.ended(255);
    let refused = api.sign_in("alice", &password).await.err().or_fail("be refused");
    assert!(refused.to_string().contains("too many attempts"), "{refused}");
    let (_, said) = stranger.ssh_password("alice+web", &password, &[], &["echo in"]).await.ended(255);
    assert!(said.contains("Permission denied"), "{said}");

    assert_eq!(theirs.ssh("web", &["echo in"]).await.succeeded(), "in\n");
    is_unharmed(&world, &laptop).await;
}

/// Identity is what the last successful method proved, and nothing of an earlier name counts for a later one.
#[tokio::test]
async fn a_change_of_name_forgets_everything() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let (alice, password) = world.person_and_password("alice").await;
    let mut create = tests::wanted("train");
    create.image = Some(IMAGE.to_owned());
    make(&alice, &create).await;
    let mut theirs = Laptop::new(&world).await;
    theirs.user = "alice".to_owned();
    theirs.register_with(&alice, "key").await;
    for (laptop, name) in [(&laptop, "admin"), (&theirs, "alice")] {
        laptop.ssh("train", &[&format!("printf {name} > /userhome/whose")]).await.succeeded();
    }
    laptop.python("change_of_name.py", &["train", "alice", &password]).await.succeeded();
}

fn fingerprint(laptop: &Laptop<'_>) -> String {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-l", "-f"]).arg(laptop.path("key.pub"));
    let said = keygen.output().or_fail("run ssh-keygen").stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    said.split(' ').nth(1).or_fail("find a fingerprint").to_owned()
}

#[tokio::test]
async fn what_is_revoked_is_closed_at_once() {
    let world = world().await;
    let laptop = Laptop::new(&world).await;
    let client = world.client();
    let alice = world.person("alice").await;
    let mut create = tests::wanted("train");
    create.image = Some(IMAGE.to_owned());
    make(&alice, &create).await;

    // A key.
    let key = laptop.register("key").await;
    let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-tt"]));
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
    let begun = Instant::now();
    client.remove_ssh_key(key.id.as_str()).await.or_fail("remove a key");
    assert_eq!(talk.ends().await, Some(255));
    assert!(begun.elapsed() < REVOKED_LIMIT, "it took {:?}", begun.elapsed());
    laptop.ssh("train", &["true"]).await.ended(255);

    // A user, with a forward and nothing else.
    let mut theirs = Laptop::new(&world).await;
    theirs.user = "alice".to_owned();
    theirs.register_with(&alice, "key").await;
    let mut talk = Talk::start(theirs.ssh_as("alice+train", &["-tt"]));
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
    let socket = theirs.path("idle");
    let idle = format!("{}:127.0.0.1:22", socket.display());
    let mut idle = Talk::start(theirs.ssh_as("alice+train", &["-N", "-L", &idle]));
    wait_until("the forward listens", LIMIT, async || socket.exists().then_some(())).await;
    let begun = Instant::now();
    let disable = ["user", "disable", "alice"];
    world.berth(&disable).await.succeeded();
    assert_eq!(talk.ends().await, Some(255));
    assert_eq!(idle.ends().await, Some(255));
    assert!(begun.elapsed() < REVOKED_LIMIT, "it took {:?}", begun.elapsed());

    // A password that was changed: the session that it opened ends.
    let ask = laptop.path("ask");
    let password = world.password().to_owned();
    laptop.ssh_password("admin+train", &password, &[], &["true"]).await.succeeded();
    let mut ssh = Command::new("ssh");
    ssh.args(laptop.options()).args(["-tt", "-o", "PubkeyAuthentication=no"]);
    ssh.args(["-p", &world.ssh_port().to_string(), "admin+train@127.0.0.1"]);
    ssh.env("SSH_ASKPASS", ask).env("SSH_ASKPASS_REQUIRE", "force").env("DISPLAY", ":");
    let mut talk = Talk::start(ssh);
    talk.types("echo in-$((6*7))\r").await;
    talk.shows("in-42").await;
    let begun = Instant::now();
    let change = gateway_api::session::ChangePassword { new: format!("{password}-new"), old: password };
    client.change_password(&change).await.or_fail("change the password");
    assert_eq!(talk.ends().await, Some(255));
    assert!(begun.elapsed() < REVOKED_LIMIT, "it took {:?}", begun.elapsed());
}

#[tokio::test]
async fn forwards_stay_inside_the_instance() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let alice = world.person("alice").await;
    let mut create = tests::wanted("web");
    create.image = Some(IMAGE.to_owned());
    create.command = ["sh", "-c", "python3 -m http.server 7000"].map(str::to_owned).to_vec();
    let id = make(&alice, &create).await;
    let address = engine::address_of(id.as_str());
    assert!(!address.is_empty(), "it has an address");
    wait_until("her server listens", LIMIT, async || {
        let listens = ["sh", "-c", "grep -qsi ':1B58 .* 0A ' /proc/net/tcp /proc/net/tcp6"];
        let ran = alice.run("web", &listens, b"").await.or_fail("look for a listener");
        (ran.exit == Exit::Code(0)).then_some(())
    })
    .await;
    let bridge = laptop.ssh("train", &["ip route 2>/dev/null || cat /proc/net/route"]).await.succeeded();
    let gateway = default_route(&bridge);

    let (_, console_port) = world.console().rsplit_once(':').or_fail("find the console's port");
    let ssh_port = world.ssh_port().to_string();
    for target in [
        // This machine, by loopback and by the instance's own network.
        format!("127.0.0.1:{console_port}"),
        format!("localhost:{ssh_port}"),
        format!("{gateway}:{console_port}"),
        format!("{gateway}:{ssh_port}"),
        // Another tenant.
        format!("{address}:7000"),
        // Where clouds keep secrets.
        "169.254.169.254:80".to_owned(),
    ] {
        let ran = laptop.run(laptop.ssh_as("admin+train", &["-W", &target]), b"GET / HTTP/1.0\r\n\r\n").await;
        let (out, _) = ran.ended(255);
        assert_eq!(out, "", "{target} answers");
    }
    // The agent's own socket, also by a link.
    laptop.ssh("train", &["ln -sf /.berth/door/link/gateway.sock /tmp/link"]).await.succeeded();
    for path in ["/.berth/door/link/gateway.sock", "/tmp/link"] {
        let socket = laptop.path("forward");
        let forward = format!("{}:{path}", socket.display());
        let mut talk = Talk::start(laptop.ssh_as("admin+train", &["-N", "-L", &forward]));
        wait_until("the forward listens", LIMIT, async || socket.exists().then_some(())).await;
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).or_fail("connect to a forward");
        stream.set_read_timeout(Some(LIMIT)).or_fail("set a limit");
        let mut answer = Vec::new();
        let _reset_or_not = stream.read_to_end(&mut answer);
        assert_eq!(answer, b"", "{path}");
        talk.hangs_up();
        drop(talk);
        let _ = std::fs::remove_file(&socket);
    }
    // Each of these is in the audit log; what merely does not run inside is not.
    let last = "169.254.169.253:80";
    for target in ["127.0.0.1:7777", last] {
        laptop.run(laptop.ssh_as("admin+train", &["-W", target]), b"").await.ended(255);
    }
    wait_until("the refused forwards are written down", LIMIT, async || {
        let told = refusals(&world, "access").await.join("\n");
        let outside =
            [format!("{gateway}:{console_port}"), format!("{address}:7000"), "169.254.169.254:80".to_owned()];
        let ours = ["/.berth/door/link/gateway.sock", "/tmp/link", last].map(str::to_owned);
        let all = outside.iter().chain(&ours).all(|to| told.contains(&format!("ssh train to {to}")));
        assert!(!told.contains(":7777"), "{told}");
        all.then_some(())
    })
    .await;
    // X11 is refused, and the session goes on without it.
    let mut with_x11 = laptop.ssh_as("admin+train", &["-Y"]);
    with_x11.arg("echo ${DISPLAY-none}").env("DISPLAY", ":9");
    let (out, said) = laptop.run(with_x11, b"").await.ended(0);
    assert!(said.contains("X11 forwarding request failed"), "{said}");
    assert_eq!(out, "none\n");
    is_unharmed(&world, &laptop).await;
}

/// The address of the default route, as `ip route` or the kernel's own table tells it.
fn default_route(told: &str) -> String {
    if let Some(rest) = told.lines().find_map(|line| line.strip_prefix("default via ")) {
        return rest.split(' ').next().unwrap_or_default().to_owned();
    }
    let hex = told.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (_device, destination) = (fields.next()?, fields.next()?);
        fields.next().filter(|_| destination == "00000000")
    });
    let number = u32::from_str_radix(hex.or_fail("find the default route"), 16).or_fail("read a route");
    std::net::Ipv4Addr::from(number.swap_bytes()).to_string()
}

#[tokio::test]
async fn nonsense_before_the_banner_is_cut_off() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let door = ("127.0.0.1", world.ssh_port());
    let endless = vec![b'x'; 4 << 20];
    let inputs: [&[u8]; 7] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"SSH-1.5-old\r\n",
        b"SSH-2.0-\0\xff\xfe\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        &endless,
        // A banner and then a packet that says to be enormous.
        b"SSH-2.0-x\r\n\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for input in inputs {
        let mut stream = TcpStream::connect(door).or_fail("connect");
        stream.set_read_timeout(Some(LIMIT)).or_fail("set a limit");
        // It may be closed before all was sent.
        let _ = stream.write_all(input);
        // Whoever announces a packet is not left waiting for it.
        if !input.starts_with(b"SSH-2.0-x") {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"SSH-2.0-"), "{answer:?}");
    }
    // Once for a source, however often it tries.
    assert_eq!(is_written_down(&world, "not SSH").await, 1);
    assert_eq!(is_written_down(&world, "broken packets").await, 1);
    is_unharmed(&world, &laptop).await;
}

#[tokio::test]
async fn those_who_say_nothing_keep_nobody_out() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    // Each says that it speaks SSH and then nothing; past the limit of a source they are closed at once.
    // All connect at once, before the first one times out.
    let mut come = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", world.ssh_port())).or_fail("connect");
        let _ = stream.write_all(b"SSH-2.0-silent\r\n");
        stream.set_read_timeout(Some(LIMIT)).or_fail("set a limit");
        come.push(stream);
    }
    let mut silent = Vec::new();
    let mut closed = 0;
    for mut stream in come {
        match stream.read(&mut [0; 8]) {
            Ok(read) if read > 0 => silent.push(stream),
            Ok(_) | Err(_) => closed += 1,
        }
    }
    assert!(silent.len() <= 64 && closed >= 100, "{} are open, {closed} were closed", silent.len());
    assert_eq!(is_written_down(&world, "too many connections").await, 1);
    // From elsewhere one gets in all the while.
    let said = laptop.ssh_with("train", &["-b", "127.0.0.2"], &["echo in"], b"").await;
    assert_eq!(said.succeeded(), "in\n");
    // Earlier sessions are not disturbed, and places are free again once the silent ones have gone.
    silent.clear();
    wait_until("a place is free", LIMIT, async || {
        (laptop.ssh("train", &["true"]).await.code == Some(0)).then_some(())
    })
    .await;
    is_unharmed(&world, &laptop).await;
}

#[tokio::test]
async fn spoilt_packets_harm_only_their_connection() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let rounds = count("BERTH_SSH_ROUNDS", 300).to_string();
    laptop.python("spoilt_packets.py", &["train", &rounds]).await.succeeded();
    is_written_down(&world, "ssh train with broken packets").await;
    is_unharmed(&world, &laptop).await;
    laptop.python("spoilt_sign_in.py", &["train", &rounds]).await.succeeded();
    is_written_down(&world, "broken packets\"").await;
    is_unharmed(&world, &laptop).await;
}

#[tokio::test]
async fn spoilt_sftp_packets_harm_only_their_channel() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    let rounds = count("BERTH_SSH_ROUNDS", 300).to_string();
    for target in ["train", "-"] {
        laptop.python("spoilt_sftp.py", &[target, &rounds]).await.succeeded();
    }
    is_unharmed(&world, &laptop).await;
}

#[tokio::test]
async fn what_is_slipped_into_the_key_exchange_ends_it() {
    let world = World::start().await;
    let laptop = Laptop::new(&world).await;
    laptop.python("slipped_in.py", &[]).await.succeeded();
}

#[tokio::test]
async fn channels_are_bounded() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    // More than may be open at once, which is 512.
    let channels = count("BERTH_SSH_CHANNELS", 600).to_string();
    laptop.python("many_channels.py", &["train", &channels]).await.succeeded();
    assert_eq!(is_written_down(&world, "ssh train with too many channels").await, 1);
    is_unharmed(&world, &laptop).await;
}

#[tokio::test]
async fn huge_commands_are_refused_in_words() {
    let world = world().await;
    let laptop = Laptop::with_key(&world).await;
    laptop.python("huge_requests.py", &["train"]).await.succeeded();
    // One that no kernel takes, and one that no packet holds.
    is_written_down(&world, "ssh train with a command of 150002 bytes").await;
    is_written_down(&world, "ssh train with broken packets").await;
    is_unharmed(&world, &laptop).await;
}
