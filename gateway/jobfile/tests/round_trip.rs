//! Whatever texts are in a job: written as our own YAML and read again, it is the same job. And no bytes at all make
//! the reader fall over.

use std::collections::BTreeMap;

use jobfile::{
    Dialect, JobSpec, Site, read,
    spec::{Command, Completion, Mount, Purpose, Resources, Retries, Role, Source},
    write,
};
use proptest::prelude::*;

/// Texts that YAML could take for something else, and any others.
fn text() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        "null",
        "~",
        "true",
        "yes",
        "1",
        "1.10",
        "0x1f",
        "- a",
        "a: b",
        "a #b",
        " a",
        "a ",
        "|",
        ">",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "\"",
        "'",
        "\\",
        "{",
        "[",
        "a\nb",
        "a\n\nb\n",
        "\na",
        "a\n",
        "a\n\n",
        "a\tb",
        "\tb",
        "a\r\nb",
        "---",
        "...",
        "? a",
        "a\n  b\n c",
        "a \nb",
        "<<",
        "=",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "中文：说明",
        "😀",
        "\u{7f}",
        "a\n# b",
        "#",
        ":",
        "a:",
        ":a",
    ]);
    prop_oneof![tricky.prop_map(str::to_owned), "\\PC{1,12}", "[ -~\n]{1,30}"]
}

fn filled() -> impl Strategy<Value = String> {
    text().prop_filter("a command must have something in it", |text| {
        !text.trim().is_empty() && !["null", "~", "never", "always"].contains(&text.as_str())
    })
}

fn job() -> impl Strategy<Value = JobSpec> {
    let command = prop_oneof![
        filled().prop_map(Command::Shell),
        prop::collection::vec(filled(), 1..4).prop_map(Command::Program)
    ];
    let env = prop::collection::btree_map("[A-Z_]{1,8}", text(), 0..4);
    let numbers = (1u32..9, 1u64..100_000, prop::option::of(0u64..64), 0u32..9);
    let completion = (prop::option::of(1u32..9), prop::option::of(1u32..9));
    (command, env, numbers, completion, any::<bool>(), text(), 0u32..5).prop_map(
        |(
            command,
            env,
            (tasks, memory, shm_mib, gpus),
            (min_failed, min_succeeded),
            read_only,
            kept,
            retries,
        )| {
            let only_waits = command.only_waits();
            let role = Role {
                name: "main".to_owned(),
                tasks,
                image: Some("ubuntu:22.04".to_owned()),
                command,
                work_dir: None,
                resources: Resources { cpus: f64::from(tasks) / 4.0, memory_mib: memory + 64, shm_mib, gpus },
                ports: Vec::new(),
                completion: Completion { min_failed, min_succeeded },
                task_retries: Retries::UpTo(0),
            };
            let from = Source::Storage { name: "datasets".to_owned(), path: "a/b".to_owned() };
            JobSpec {
                dialect: Dialect::OpenpaiV1,
                name: Some("job".to_owned()),
                description: String::new(),
                purpose: if only_waits { Purpose::Interactive } else { Purpose::Batch },
                share: None,
                workspace: None,
                cluster: read_only.then(|| "annex".to_owned()),
                pool: None,
                gpu_model: None,
                priority: Some(3),
                retries: Retries::UpTo(retries),
                time_limit: None,
                idle_timeout: None,
                keep_on_failure: read_only,
                framework: None,
                env,
                data_dir: Some(Source::Home("data".to_owned())),
                code_dir: None,
                output_dir: None,
                mounts: vec![Mount { from, to: "/data".to_owned(), read_only }],
                roles: vec![role],
                kept: BTreeMap::from([("/x".to_owned(), serde_json::json!({ "a": [kept, 1, null, true] }))]),
                secrets: BTreeMap::new(),
                registry_login: None,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_as_the_same(spec in job()) {
        let text = write(&spec);
        let again = read(text.as_bytes(), &Site::default());
        prop_assert_eq!(again.spec.as_ref(), Some(&spec), "{}\n{:?}", text, again.notes);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let reading = read(text.as_bytes(), &Site::default());
        prop_assert!(reading.spec.is_some() || !reading.notes.is_empty());
    }

    /// Files that are nearly right: a piece is cut out of a sample.
    #[test]
    fn a_torn_file_is_answered(from in 0usize..2000, length in 0usize..200, which in 0usize..7) {
        let files: [&[u8]; 7] = [
            include_bytes!("files/hello-world.json"),
            include_bytes!("files/imagenet-4gpu.json"),
            include_bytes!("files/two-roles.json"),
            include_bytes!("files/protocol-v2.yaml"),
            include_bytes!("files/sample_job.params"),
            include_bytes!("files/shell.yaml"),
            include_bytes!("files/berth.yaml"),
        ];
        let mut torn = files[which].to_vec();
        let from = from.min(torn.len());
        let to = (from + length).min(torn.len());
        torn.drain(from..to);
        let reading = read(&torn, &Site::default());
        prop_assert!(reading.spec.is_some() || !reading.notes.is_empty());
    }
}
