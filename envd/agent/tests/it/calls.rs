//! Dial and exec.

use envd_api::agent::{Call, Chunk, Received, Refusal};
use process_api::{Exit, Size};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{Outcome, World, exec, soon, spec, until, with_tty};

#[tokio::test]
async fn exec_keeps_the_streams_apart_and_passes_the_exit_on() {
    let mut world = World::linked(&spec(&[])).await;
    let outcome = world.run(&["sh", "-c", "echo out; echo err >&2; echo $IMAGE, $EXTRA; exit 7"]).await;
    let expected = Outcome {
        stdout: "out\nfrom the image, from the call\n".to_owned(),
        stderr: "err\n".to_owned(),
        exit: Some(Exit::Code(7)),
    };
    assert_eq!(outcome, expected);
    let killed = world.run(&["sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.exit, Some(Exit::Signal("KILL".to_owned())));
}

#[tokio::test]
async fn exec_waits_neither_for_orphans_nor_loses_what_was_written() {
    let mut world = World::linked(&spec(&[])).await;
    let outcome = world.run(&["sh", "-c", "sleep 60 & head -c 60000 /dev/zero | tr '\\0' x"]).await;
    assert_eq!((outcome.stdout.len(), outcome.exit), (60_000, Some(Exit::Code(0))));
}

#[tokio::test]
async fn input_flows_through_with_back_pressure_and_ends_when_told() {
    let mut world = World::linked(&spec(&[])).await;
    let process = world.process(Call::Exec(exec(&["cat"]))).await;
    let (mut input, mut output) = (process.input, process.output);
    let data: Vec<u8> = (0..4_u32 << 20).map(|at| (at % 251).to_le_bytes()[0]).collect();
    let write = async {
        // Short pieces are read and written, long ones handed over.
        let mut rest = &data[..];
        for length in [1, 100_000, 9000, 10, 8192, 70_000, 65_536, 8191, usize::MAX] {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            input.stdin(piece).await.unwrap();
            rest = after;
        }
        input.send(&Chunk::CloseStdin).await.unwrap();
        input
    };
    let read = async {
        let mut echo = Vec::new();
        loop {
            match soon("the echo", output.next()).await.unwrap() {
                Some(Chunk::Stdout(bytes)) => echo.extend(bytes),
                Some(Chunk::Exit(exit)) => return (echo, exit),
                other => panic!("unexpected {other:?}"),
            }
        }
    };
    let (_kept, (echo, exit)) = tokio::join!(write, read);
    assert!(echo == data, "{} of {} bytes", echo.len(), data.len());
    assert_eq!(exit, Exit::Code(0));
}

#[tokio::test]
async fn what_comes_after_input_that_nobody_reads_any_more_is_understood() {
    let mut world = World::linked(&spec(&[])).await;
    let script = "head -c 1000; exec <&-; while :; do sleep 0.05; done";
    let mut process = world.process(Call::Exec(exec(&["sh", "-c", script]))).await;
    soon("the input is taken", process.input.stdin(&vec![b'x'; 4 << 20])).await.unwrap();
    process.input.send(&Chunk::Signal("TERM".to_owned())).await.unwrap();
    let outcome = process.outcome().await;
    assert_eq!((outcome.stdout.len(), outcome.exit), (1000, Some(Exit::Signal("TERM".to_owned()))));
}

#[tokio::test]
async fn a_child_starts_as_from_a_shell() {
    let mut world = World::linked(&spec(&[])).await;
    let fds = world.run(&["sh", "-c", "ls -l /proc/self/fd | grep -c -e socket: -e anon_inode"]).await;
    assert_eq!(fds.stdout, "0\n");
    let ignored = world.run(&["sh", "-c", "sed -n 's/^SigIgn:\\s*//p' /proc/$$/status"]).await;
    let ignored = u64::from_str_radix(ignored.stdout.trim(), 16).unwrap();
    // Of the signals that have a name.
    assert_eq!(ignored & 0x7fff_ffff, 0, "{ignored:x}");
    let session =
        world.run(&["sh", "-c", "ps -o pid=,sid=,pgid= -p $$ || cut -d' ' -f1,5,6 /proc/$$/stat"]).await;
    let numbers: Vec<_> = session.stdout.split_whitespace().collect();
    assert!(numbers.len() == 3 && numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_in_words() {
    let mut world = World::linked(&spec(&[])).await;
    let check = |refused: (Refusal, String), words: &str| {
        assert_eq!(refused, (Refusal::CannotRun, words.to_owned()));
    };
    check(world.refused(Call::Exec(exec(&["no-such-tool"]))).await, "`no-such-tool` is not in this image");
    check(world.refused(Call::Exec(exec(&["/etc"]))).await, "`/etc` is in this image but is not a program");
    check(world.refused(Call::Exec(exec(&[]))).await, "no command was given");
    let mut nowhere = exec(&["true"]);
    nowhere.cwd = Some("/no/such".to_owned());
    check(world.refused(Call::Exec(nowhere)).await, "`/no/such` is not a directory in this instance");
}

#[tokio::test]
async fn a_terminal_for_a_process_has_the_size_that_was_asked_for() {
    let mut world = World::linked(&spec(&[])).await;
    let script = "stty size; echo $TERM; read go; stty size; test -t 1 && echo tty; exit 5";
    let mut process = world.process(Call::Exec(with_tty(exec(&["sh", "-c", script])))).await;
    process.shows("24 80\r\nxterm-256color\r\n").await;
    process.input.send(&Chunk::Resize(Size { cols: 132, rows: 50 })).await.unwrap();
    process.types("go\n").await;
    let outcome = process.outcome().await;
    assert!(outcome.stdout.ends_with("50 132\r\ntty\r\n"), "{outcome:?}");
    assert_eq!(outcome.exit, Some(Exit::Code(5)));
}

#[tokio::test]
async fn signals_go_to_the_whole_group() {
    let mut world = World::linked(&spec(&[])).await;
    let mut process =
        world.process(Call::Exec(exec(&["sh", "-c", "echo ready; sleep 60; echo never"]))).await;
    process.shows("ready").await;
    process.input.send(&Chunk::Signal("TERM".to_owned())).await.unwrap();
    assert_eq!(process.outcome().await.exit, Some(Exit::Signal("TERM".to_owned())));
}

#[tokio::test]
async fn a_process_is_hung_up_when_the_gateway_goes() {
    let mut world = World::linked(&spec(&[])).await;
    for tty in [false, true] {
        let mark = world.directory.path().join(format!("hung-up-{tty}"));
        let script =
            format!("trap 'echo > {}; exit' HUP; echo ready; while :; do sleep 0.05; done", mark.display());
        let call = exec(&["sh", "-c", &script]);
        let mut process = world.process(Call::Exec(if tty { with_tty(call) } else { call })).await;
        process.shows("ready").await;
        drop(process);
        until("the mark of a hang-up", || mark.exists()).await;
    }
}

#[tokio::test]
async fn a_gateway_that_goes_is_noticed_behind_input_that_nobody_reads() {
    let mut world = World::linked(&spec(&[])).await;
    let mark = world.directory.path().join("hung-up");
    let script =
        format!("trap 'echo > {}; exit' HUP; echo ready; while :; do sleep 0.05; done", mark.display());
    let mut process = world.process(Call::Exec(exec(&["sh", "-c", &script]))).await;
    process.shows("ready").await;
    let flood = vec![0; 16 << 20];
    let others = async {
        for _ in 0..5 {
            assert_eq!(world.run(&["echo", "served"]).await.stdout, "served\n");
        }
    };
    // The agent serves others meanwhile, and takes nothing more of this.
    tokio::select! {
        sent = process.input.stdin(&flood) => panic!("{sent:?}: somebody read it"),
        () = others => {}
    }
    drop(process);
    until("the mark of a hang-up", || mark.exists()).await;
}

#[tokio::test]
async fn dial_hands_over_a_connection() {
    let mut world = World::linked(&spec(&[])).await;
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(app) = tokio::net::TcpListener::bind(address).await else { continue };
        let port = app.local_addr().unwrap().port();
        let (_, Received::Descriptor(mut passed)) = world.ask(Call::Dial { port }).await else {
            panic!("no descriptor")
        };
        let (mut connection, _) = soon("the app's connection", app.accept()).await.unwrap();
        passed.write_all(b"ping").await.unwrap();
        let mut echo = [0; 4];
        soon("ping", connection.read_exact(&mut echo)).await.unwrap();
        connection.write_all(&echo).await.unwrap();
        soon("pong", passed.read_exact(&mut echo)).await.unwrap();
        assert_eq!(&echo, b"ping");
        // The agent keeps no copy: the end arrives.
        drop(passed);
        assert_eq!(soon("the end", connection.read(&mut echo)).await.unwrap(), 0);
        drop(app);
        let refused = world.refused(Call::Dial { port }).await;
        let words = format!("nothing listens on port {port} in this instance");
        assert_eq!(refused, (Refusal::NothingListens, words));
    }
}

#[tokio::test]
async fn a_newer_gateway_is_understood_or_told_so() {
    let mut world = World::linked(&spec(&[])).await;
    let newer =
        serde_json::json!({"request": 1, "mood": "fine", "call": {"dial": {"port": 1, "colour": "blue"}}});
    let (_, received) = world.ask_raw(&newer).await;
    assert!(matches!(received, Received::Refused { refusal: Refusal::NothingListens, .. }), "{received:?}");
    let unknown = serde_json::json!({"request": 2, "call": {"teleport": {}}});
    let (_, received) = world.ask_raw(&unknown).await;
    assert!(matches!(received, Received::Refused { refusal: Refusal::UnknownCall, .. }), "{received:?}");
}
