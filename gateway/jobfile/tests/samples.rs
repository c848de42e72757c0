//! The files that people bring: each is read, shown as our own YAML, and read again from that.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::{fs, path::Path};

use jobfile::{JobSpec, Site, read, spec::StoragePath, write};

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
fn secrets_are_not_written_nor_shown() {
    let spec = spec("protocol-v2.yaml");
    assert_eq!(spec.secrets["wandb"].reveal(), "not-for-you");
    assert!(!write(&spec).contains("not-for-you"));
    assert!(!format!("{spec:?}").contains("not-for-you"));
}
