//! The files that people bring: each is read, shown as our own YAML, and read again from that.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::{fs, path::Path};

use jobfile::{
    JobSpec, Site, read,
    spec::{Accompaniment, Command, StoragePath},
    write,
};

/// A site that knows the old names of its storages and of its registry.
fn site() -> Site {
    let storage = |path: &str, name: &str, below: &str| StoragePath {
        path: path.to_owned(),
        name: name.to_owned(),
        below: below.to_owned(),
    };
    Site {
        storages: Some(vec![
            storage("/gdata", "shared", ""),
            storage("/home/cluster", "old-cluster", "home"),
            storage("/home/cluster/datasets", "datasets", ""),
            storage("/mnt/datasets", "datasets", ""),
        ]),
        registries: [("registry.example.org:5000".to_owned(), "hub.example.org".to_owned())].into(),
        shares: Some(vec!["default".to_owned(), "vision".to_owned()]),
        ..Site::default()
    }
}

fn file(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)).unwrap()
}

fn spec(name: &str) -> JobSpec {
    let reading = read(&file(name), &site());
    reading.spec.unwrap_or_else(|| panic!("{name}: {:#?}", reading.notes))
}

#[test]
fn every_sample_becomes_our_own() {
    let samples = [
        "hello-world.json",
        "imagenet-4gpu.json",
        "two-roles.json",
        "protocol-v2.yaml",
        "sample_job.params",
        "shell.yaml",
        "berth.yaml",
    ];
    for name in samples {
        let reading = read(&file(name), &site());
        let notes = reading.notes.iter().map(|note| {
            let place = note.place.unwrap_or_default();
            format!(
                "# {}:{}: {} [{}]\n",
                place.line,
                place.column,
                note.message(),
                note.hint().unwrap_or_default()
            )
        });
        let spec = reading.spec.clone().unwrap_or_else(|| panic!("{name}: {:#?}", reading.notes));
        let text = notes.collect::<Vec<_>>().concat() + &write(&spec);
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn what_is_written_is_read_as_the_same() {
    for name in [
        "hello-world.json",
        "imagenet-4gpu.json",
        "two-roles.json",
        "sample_job.params",
        "shell.yaml",
        "berth.yaml",
    ] {
        let spec = spec(name);
        let again = read(write(&spec).as_bytes(), &site());
        assert_eq!(again.spec.as_ref(), Some(&spec), "{name}:\n{}\n{:?}", write(&spec), again.notes);
        assert_eq!(again.notes, [], "{name}");
    }
}

#[test]
fn a_job_in_the_sites_own_image_is_so_also_when_it_was_converted() {
    let file = b"description: x\nentrypoint: [python, train.py]\n";
    let spec = read(file, &site()).spec.unwrap();
    assert_eq!(spec.roles[0].image, None);
    let again = read(write(&spec).as_bytes(), &site());
    assert_eq!(again.spec.as_ref(), Some(&spec), "{:?}", again.notes);
}

#[test]
fn an_image_is_where_the_longest_alias_leads() {
    let aliases =
        [("old:5000", "hub"), ("old:5000/lab", "hub/vision"), ("old:5000/lab/own", "localhost/berth")];
    let registries = aliases.map(|(old, now)| (old.to_owned(), now.to_owned())).into();
    let site = Site { registries, ..Site::default() };
    for (image, expected) in [
        ("old:5000/a:1", "hub/a:1"),
        ("old:5000/lab/a:1", "hub/vision/a:1"),
        ("old:5000/lab/own/a", "localhost/berth/a"),
        ("old:5000/labour/a", "hub/labour/a"),
        ("older:5000/a", "older:5000/a"),
        ("old:5000", "old:5000"),
    ] {
        let file = format!("berth: 1\nname: a\nimage: {image}\ncommand: x\n");
        let spec = read(file.as_bytes(), &site).spec.unwrap();
        assert_eq!(spec.roles[0].image.as_deref(), Some(expected), "{image}");
    }
}

#[test]
fn what_comes_with_cards_is_no_more_than_the_machine_has() {
    let of = |slots: u32, with_gpus_most| {
        let site = Site { with_gpus_most, ..Site::default() };
        let spec = read(format!("resources: {{slots: {slots}}}").as_bytes(), &site).spec.unwrap();
        (spec.roles[0].resources.cpus, spec.roles[0].resources.memory_mib >> 10)
    };
    let machine = Some(Accompaniment { cpus: 16.0, memory_mib: 96 << 10 });
    assert_eq!(of(8, None), (32.0, 128));
    assert_eq!(of(8, machine), (16.0, 96));
    assert_eq!(of(2, machine), (8.0, 32));
    assert_eq!(of(0, machine), (4.0, 16));
}

#[test]
fn a_job_has_one_model_of_cards() {
    let roles = ["master", "worker"].map(|name| {
        format!(
            "  {name}: {{dockerImage: i, resourcePerInstance: {{cpu: 1, memoryMB: 100}}, commands: [x]}}\n"
        )
    });
    let file = format!(
        "protocolVersion: 2\nname: a\ntype: job\nprerequisites: [{{name: i, type: dockerimage, uri: u}}]\n\
         taskRoles:\n{}extras:\n  hivedScheduler:\n    taskRoles:\n      master: {{skuType: A100}}\n      \
         worker: {{skuType: V100}}\n",
        roles.concat()
    );
    let reading = read(file.as_bytes(), &site());
    let notes: Vec<_> = reading.notes.iter().map(|note| (note.pointer.as_str(), note.hint())).collect();
    let hint = "all tasks of a job get the model that its first role names".to_owned();
    assert_eq!(notes, [("/extras/hivedScheduler/taskRoles/worker/skuType", Some(hint))]);
    assert_eq!(reading.spec.unwrap().gpu_model.as_deref(), Some("A100"));
}

/// The lines themselves are run: what a shell makes of them is what counts.
#[test]
fn what_follows_success_does_not_follow_failure() {
    let run = |command: &str| {
        let file = format!(
            "protocolVersion: 2\nname: a\ntype: job\nprerequisites: [{{name: i, type: dockerimage, uri: u}}]\n\
             taskRoles:\n  main: {{dockerImage: i, resourcePerInstance: {{cpu: 1, memoryMB: 100}}, \
             commands: ['{command}']}}\n\
             extras:\n  com.microsoft.pai.runtimeplugin:\n  - plugin: cmd\n    parameters:\n      callbacks:\n      \
             - {{event: taskStarts, commands: [echo before]}}\n      - {{event: taskSucceeds, commands: [echo after]}}\n"
        );
        let spec = read(file.as_bytes(), &site()).spec.unwrap();
        let Command::Shell(lines) = &spec.roles[0].command else { panic!("{spec:?}") };
        let ran = std::process::Command::new("sh").args(["-c", lines]).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
    };
    assert_eq!(run("echo me"), (Some(0), "before\nme\nafter\n".to_owned()));
    assert_eq!(run("(exit 3)"), (Some(3), "before\n".to_owned()));
    assert_eq!(run("exit 4"), (Some(4), "before\n".to_owned()));
}

#[test]
fn secrets_are_not_written_nor_shown() {
    let spec = spec("protocol-v2.yaml");
    assert_eq!(spec.secrets["wandb"].reveal(), "not-for-you");
    assert!(!write(&spec).contains("not-for-you"));
    assert!(!format!("{spec:?}").contains("not-for-you"));
}
