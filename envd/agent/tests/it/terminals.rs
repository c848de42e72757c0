//! Terminals that outlive their viewers.

use envd_api::agent::{
    Call, Chunk, Received, Refusal, Terminal, TerminalsAct, TerminalsCall, TerminalsReport, read_message,
};
use process_api::{Exit, Size};

use crate::world::{Process, World, soon, spec, until};

fn terminal(name: &str) -> Call {
    Call::Terminal(Terminal { name: name.to_owned(), size: Size { cols: 80, rows: 24 } })
}

async fn ends(viewer: &mut Process) -> Exit {
    loop {
        match soon("the shell's end", viewer.output.next()).await.unwrap() {
            Some(Chunk::Stdout(_)) => {}
            Some(Chunk::Exit(exit)) => return exit,
            other => panic!("unexpected {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_terminal_stays_when_its_viewers_leave() {
    let mut world = World::linked(&spec(&[])).await;
    let mut first = world.process(terminal("1")).await;
    first.types("kept=$((40+2)); echo mark-$kept\n").await;
    first.shows("mark-42").await;
    drop(first);

    // The gateway restarts, the browser comes back.
    world.vanish();
    std::fs::remove_file(world.socket()).unwrap();
    world.listen();
    world.wait_for_link().await;

    let mut second = world.process(terminal("1")).await;
    second.shows("mark-42").await;
    second.types("echo again-$kept\n").await;
    second.shows("again-42").await;
    let mut third = world.process(terminal("1")).await;
    third.shows("again-42").await;
    third.types("echo both-$((kept+1))\n").await;
    second.shows("both-43").await;
    third.shows("both-43").await;

    third.types("exit 3\n").await;
    assert_eq!(ends(&mut second).await, Exit::Code(3));
    assert_eq!(ends(&mut third).await, Exit::Code(3));

    let mut fresh = world.process(terminal("1")).await;
    fresh.types("echo fresh-$((1+1))\n").await;
    assert!(!fresh.shows("fresh-2").await.contains("mark-42"));
}

#[tokio::test]
async fn the_size_is_the_one_last_asked_for() {
    let mut world = World::linked(&spec(&[])).await;
    let mut viewer = world.process(terminal("sizes")).await;
    viewer.input.send(&Chunk::Resize(Size { cols: 101, rows: 33 })).await.unwrap();
    viewer.types("stty size\n").await;
    viewer.shows("33 101").await;
    let mut other = world.process(terminal("sizes")).await;
    other.shows("33 101").await;
    other.types("stty size\n").await;
    viewer.shows("24 80").await;
}

#[tokio::test]
async fn a_flood_reaches_its_viewer_whole() {
    let mut world = World::linked(&spec(&[])).await;
    let mut viewer = world.process(terminal("flood")).await;
    viewer.types("stty -echo; echo set-$((1+1))\n").await;
    viewer.shows("set-2").await;
    viewer.types("seq 1 300000; echo end-$((1+1))\n").await;
    let shown = viewer.shows("end-2").await;
    assert!((1..=300_000).all(|line| line % 5000 != 0 || shown.contains(&format!("\n{line}\r\n"))));
    assert!(shown.len() > 2_000_000, "{}", shown.len());
}

#[tokio::test]
async fn a_viewer_that_sleeps_does_not_hold_up_the_others() {
    let mut world = World::linked(&spec(&[])).await;
    let sleeper = world.process(terminal("shared")).await;
    let mut viewer = world.process(terminal("shared")).await;
    viewer.types("seq 1 300000; echo end-$((1+1))\n").await;
    viewer.shows("end-2").await;
    // It was let go, and hears no more.
    let mut sleeper = sleeper.output;
    while let Some(chunk) = soon("the end of what was sent", sleeper.next()).await.unwrap() {
        assert!(matches!(chunk, Chunk::Stdout(_)), "{chunk:?}");
    }
}

#[tokio::test]
async fn there_is_a_bound_on_terminals() {
    let mut world = World::linked(&spec(&[])).await;
    for number in 0..32 {
        drop(world.process(terminal(&format!("t{number}"))).await);
    }
    let (refusal, message) = world.refused(terminal("one-more")).await;
    assert_eq!(refusal, Refusal::Busy, "{message}");
    // One that is there already can be come back to.
    let mut again = world.process(terminal("t0")).await;
    again.types("exit\n").await;
    ends(&mut again).await;
    world.process(terminal("one-more")).await;
}

#[tokio::test]
async fn the_job_of_a_terminal_gets_its_signals() {
    let mut world = World::linked(&spec(&[])).await;
    let mark = world.directory.path().join("interrupted");
    let mut viewer = world.process(terminal("jobs")).await;
    viewer
        .types(&format!(
            "sh -c \"trap 'echo > {}; exit' INT; echo rea''dy; while :; do sleep 0.05; done\"\n",
            mark.display()
        ))
        .await;
    viewer.shows("ready").await;
    viewer.types("\x03").await;
    until("the mark of Ctrl-C", || mark.exists()).await;
}

/// The names of the terminals after `act`, each with how many watch it.
async fn names(world: &mut World, act: TerminalsAct) -> Vec<(String, u32)> {
    let (mut stream, received) = world.ask(Call::Terminals(TerminalsCall { act })).await;
    assert!(matches!(received, Received::Stream), "{received:?}");
    let report: TerminalsReport = soon("a report", read_message(&mut stream)).await.unwrap();
    report.items.into_iter().map(|terminal| (terminal.name, terminal.viewers)).collect()
}

#[tokio::test]
async fn terminals_are_listed_and_closed() {
    let mut world = World::linked(&spec(&[])).await;
    assert_eq!(names(&mut world, TerminalsAct::List).await, []);
    let mut zsh = world.process(terminal("z")).await;
    let _watching = world.process(terminal("a")).await;
    let listed = [("z".to_owned(), 1), ("a".to_owned(), 1)];
    assert_eq!(names(&mut world, TerminalsAct::List).await, listed, "oldest first");

    let mark = world.directory.path().join("hung-up");
    zsh.types(&format!("trap 'echo > {}' EXIT; echo rea''dy\n", mark.display())).await;
    zsh.shows("ready").await;
    let close = || TerminalsAct::Close { name: "z".to_owned() };
    assert_eq!(names(&mut world, close()).await, listed[1..]);
    assert_eq!(ends(&mut zsh).await, Exit::Signal("HUP".to_owned()));
    until("the mark of the hang-up", || mark.exists()).await;
    assert_eq!(names(&mut world, close()).await, listed[1..], "it is closed already");

    let mut fresh = world.process(terminal("z")).await;
    fresh.types("echo fresh-$((1+1))\n").await;
    fresh.shows("fresh-2").await;
}

/// The least that a flood writes before it must wait. Alone the socket to a viewer holds more.
const FLOOD_MIN: u64 = 32 << 10;

#[tokio::test]
async fn little_is_on_the_way_when_ctrl_c_ends_a_flood() {
    let mut world = World::linked(&spec(&[])).await;
    let mut viewer = world.process(terminal("flood")).await;
    viewer.types("stty -echo; PS1=; echo set-$((1+1))\n").await;
    viewer.shows("set-2").await;
    let pid = world.directory.path().join("pid");
    viewer.types(&format!("sh -c 'echo $$ > {}; exec yes flood'\n", pid.display())).await;
    viewer.shows("flood").await;
    // The viewer takes nothing while everything fills up: from here on the flood waits.
    let read = || std::fs::read_to_string(&pid).unwrap_or_default();
    until("the flood", || read().ends_with('\n')).await;
    let io = format!("/proc/{}/io", read().trim());
    let written = || {
        let told = std::fs::read_to_string(&io).unwrap();
        let bytes = told.lines().find_map(|line| line.strip_prefix("wchar: "));
        bytes.unwrap().parse::<u64>().unwrap()
    };
    let mut before = 0;
    until("the flood's wait", || {
        let now = written();
        std::mem::replace(&mut before, now) == now && now >= FLOOD_MIN
    })
    .await;
    viewer.types("\x03echo end-$((1+1))\n").await;
    let left = viewer.shows("end-2").await.len();
    assert!(left < 512 << 10, "{left} bytes were on the way");
}
