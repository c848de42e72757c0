//! Every rule broken one at a time: refused, at its field and line, with what to write instead.

use jobfile::{Code, Level, Note, Site, read, spec::StoragePath};

const V1: &str = r#"{
  "jobName": "train",
  "image": "ubuntu:22.04",
  "taskRoles": [
    {
      "name": "main",
      "taskNumber": 1,
      "cpuNumber": 1,
      "memoryMB": 1024,
      "command": "true"
    }
  ]
}"#;

const V2: &str = "\
protocolVersion: 2
name: train
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: 'ubuntu:22.04'}
taskRoles:
  main:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024}
    commands: [true]
";

const DLC: &str = "\
name=train
kind=PyTorchJob
worker_count=1
worker_image=ubuntu:22.04
command=true
";

const DETERMINED: &str = "\
resources:
  slots: 1
environment:
  image: ubuntu:22.04
bind_mounts:
  - host_path: /gdata/a
    container_path: /data
";

const BERTH: &str = "\
berth: 1
name: train
image: ubuntu:22.04
command: python train.py
memory: 1G
";

fn site() -> Site {
    let storage = StoragePath { path: "/gdata".to_owned(), name: "shared".to_owned(), below: String::new() };
    Site { storages: Some(vec![storage]), shares: Some(vec!["default".to_owned()]), ..Site::default() }
}

fn errors(text: &str) -> Vec<Note> {
    let reading = read(text.as_bytes(), &site());
    let errors: Vec<_> = reading.notes.into_iter().filter(|note| note.level == Level::Error).collect();
    assert_eq!(reading.spec.is_none(), !errors.is_empty(), "{text}");
    errors
}

/// `from` in `file` becomes `to`, and that is one mistake: its code, pointer and line.
fn check(file: &str, from: &str, to: &str, code: Code, pointer: &str, line: u32) {
    assert!(file.contains(from), "{from}");
    let text = file.replacen(from, to, 1);
    let found = errors(&text);
    let [error] = found.as_slice() else { panic!("{text}\n{found:#?}") };
    assert_eq!((error.code, error.pointer.as_str()), (code, pointer), "{text}\n{error:?}");
    assert_eq!(error.place.map(|place| place.line), Some(line), "{text}\n{error:?}");
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error:?}");
}

#[test]
fn the_files_themselves_are_right() {
    for file in [V1, V2, DLC, DETERMINED, BERTH] {
        assert_eq!(errors(file), [], "{file}");
    }
}

#[test]
fn openpai_v1() {
    let check = |from: &str, to: &str, code, pointer: &str, line| check(V1, from, to, code, pointer, line);
    check("\"train\"", "\"my job\"", Code::BadName, "/jobName", 2);
    check("\"jobName\": \"train\",", "", Code::Missing, "/jobName", 1);
    check("\"ubuntu:22.04\"", "\"\"", Code::Blank, "/image", 3);
    check("\"image\": \"ubuntu:22.04\",", "", Code::Missing, "/image", 1);
    check("\"ubuntu:22.04\"", "\"two words\"", Code::BadName, "/image", 3);
    check("\"main\"", "\"ps.1\"", Code::BadName, "/taskRoles/0/name", 6);
    check("\"main\"", "\"ps~1\"", Code::BadName, "/taskRoles/0/name", 6);
    check("\"main\"", "\"ps-1\"", Code::BadName, "/taskRoles/0/name", 6);
    check("\"taskNumber\": 1", "\"taskNumber\": 0", Code::OutOfRange, "/taskRoles/0/taskNumber", 7);
    check("\"taskNumber\": 1", "\"taskNumber\": \"a\"", Code::WrongType, "/taskRoles/0/taskNumber", 7);
    check("\"taskNumber\": 1", "\"taskNumber\": 2000", Code::OutOfRange, "/taskRoles/0/taskNumber", 7);
    check("\"cpuNumber\": 1", "\"cpuNumber\": 0", Code::OutOfRange, "/taskRoles/0/cpuNumber", 8);
    check("\"cpuNumber\": 1", "\"cpuNumber\": 1.5", Code::WrongType, "/taskRoles/0/cpuNumber", 8);
    check("1024", "99", Code::OutOfRange, "/taskRoles/0/memoryMB", 9);
    check("1024", "\"much\"", Code::WrongType, "/taskRoles/0/memoryMB", 9);
    check("1024", "1024, \"shmMB\": -1", Code::OutOfRange, "/taskRoles/0/shmMB", 9);
    check("\"name\": \"main\",", "", Code::Missing, "/taskRoles/0/name", 5);
    check("1024", "1024, \"gpuNumber\": -1", Code::OutOfRange, "/taskRoles/0/gpuNumber", 9);
    check("1024", "1024, \"shmMB\": 2048", Code::ShmAboveMemory, "/taskRoles/0/shmMB", 9);
    check("1024", "1024, \"minFailedTaskCount\": 0", Code::OutOfRange, "/taskRoles/0/minFailedTaskCount", 9);
    check("1024", "1024, \"portList\": {}", Code::WrongType, "/taskRoles/0/portList", 9);
    check("1024", "1024, \"portList\": [{}]", Code::Missing, "/taskRoles/0/portList/0/label", 9);
    let ports = "1024, \"portList\": [{\"label\": \"a\", \"beginAt\": 70000}]";
    check("1024", ports, Code::OutOfRange, "/taskRoles/0/portList/0/beginAt", 9);
    let ports = "1024, \"portList\": [{\"label\": \"a\", \"portNumber\": 0}]";
    check("1024", ports, Code::OutOfRange, "/taskRoles/0/portList/0/portNumber", 9);
    let ports = "1024, \"portList\": [{\"label\": \"a\"}, {\"label\": \"a\"}]";
    check("1024", ports, Code::Twice, "/taskRoles/0/portList/1", 9);
    let ports = "1024, \"portList\": [{\"label\": \"a\", \"beginAt\": 65535, \"portNumber\": 2}]";
    check("1024", ports, Code::OutOfRange, "/taskRoles/0/portList/0", 9);
    let ports = "1024, \"portList\": [{\"label\": \"a\", \"beginAt\": 80, \"portNumber\": 9}, \
                 {\"label\": \"b\", \"beginAt\": 88}]";
    check("1024", ports, Code::SamePorts, "/taskRoles/0/portList/1", 9);
    check(
        "1024",
        "1024, \"portList\": [{\"label\": \"a b\"}]",
        Code::BadName,
        "/taskRoles/0/portList/0/label",
        9,
    );
    let least = "1024, \"minSucceededTaskCount\": 0";
    check("1024", least, Code::OutOfRange, "/taskRoles/0/minSucceededTaskCount", 9);
    check("\"command\": \"true\"", "\"x\": 1", Code::Missing, "/taskRoles/0/command", 5);
    check("\"true\"", "\" \\n\"", Code::Blank, "/taskRoles/0/command", 10);
    check("\"true\"", "\"a\\u0000b\"", Code::BadText, "/taskRoles/0/command", 10);
    let with = |field: &str| format!("\"image\": \"ubuntu:22.04\", {field}");
    let top = |field: &str, code, pointer: &str| {
        check("\"image\": \"ubuntu:22.04\"", &with(field), code, pointer, 3);
    };
    top("\"retryCount\": -1", Code::OutOfRange, "/retryCount");
    top("\"retryCount\": 1.5", Code::WrongType, "/retryCount");
    top("\"gpuType\": [\"P100\"]", Code::WrongType, "/gpuType");
    top("\"codeDir\": \"/etc\"", Code::OutsideStorage, "/codeDir");
    top("\"outputDir\": \"relative\"", Code::OutsideStorage, "/outputDir");
    top("\"codeDir\": \"hdfs://10.0.0.1:9000/a\"", Code::Hdfs, "/codeDir");
    top("\"dataDir\": \"hdfs://10.0.0.1:9000/a\"", Code::Hdfs, "/dataDir");
    top("\"outputDir\": \"hdfs://10.0.0.1:9000/a\"", Code::Hdfs, "/outputDir");
    top("\"authFile\": \"hdfs://10.0.0.1:9000/a\"", Code::Hdfs, "/authFile");
    top("\"dataDir\": \"/etc\"", Code::OutsideStorage, "/dataDir");
    top("\"dataDir\": \"/gdata/../etc\"", Code::BadPath, "/dataDir");
    top("\"dataDir\": \"s3://bucket/a\"", Code::BadPath, "/dataDir");
    top("\"virtualCluster\": \"gold\"", Code::UnknownValue, "/virtualCluster");
    top("\"jobEnvs\": {\"A=B\": 1}", Code::BadVariable, "/jobEnvs/A=B");
    top("\"jobEnvs\": {\"A\": [1]}", Code::WrongType, "/jobEnvs/A");
    top("\"jobEnvs\": 3", Code::WrongType, "/jobEnvs");
    top("\"jobEnvs\": {\"isDebug\": \"perhaps\"}", Code::WrongType, "/jobEnvs/isDebug");
    top("\"extras\": [1]", Code::WrongType, "/extras");
    let more = "\"true\"}, {\"name\": \"main\", \"command\": \"true\"";
    check("\"true\"", more, Code::Twice, "/taskRoles/1", 10);
    for alike in ["Main", "main_", "_MAIN"] {
        let more = format!("\"true\"}}, {{\"name\": \"{alike}\", \"command\": \"true\"");
        check("\"true\"", &more, Code::Alike, "/taskRoles/1", 10);
    }
    let none = errors("{\"jobName\": \"train\", \"image\": \"ubuntu:22.04\", \"taskRoles\": []}");
    assert_eq!(
        none.iter().map(|note| (note.code, note.pointer.as_str())).collect::<Vec<_>>(),
        [(Code::Blank, "/taskRoles")]
    );
}

#[test]
fn openpai_v2() {
    let check = |from: &str, to: &str, code, pointer: &str, line| check(V2, from, to, code, pointer, line);
    check("protocolVersion: 2", "protocolVersion: 3", Code::UnknownValue, "/protocolVersion", 1);
    check("type: job", "type: task", Code::UnknownValue, "/type", 3);
    check("type: dockerimage", "type: script", Code::UnknownValue, "/taskRoles/main/dockerImage", 8);
    check("  main:", "  ma.in:", Code::BadName, "/taskRoles/ma.in", 7);
    check("  main:", "  1main:", Code::BadName, "/taskRoles/1main", 7);
    let port = "{cpu: 1, memoryMB: 1024, ports: {a b: 1}}";
    let pointer = "/taskRoles/main/resourcePerInstance/ports/a b";
    check("{cpu: 1, memoryMB: 1024}", port, Code::BadName, pointer, 9);
    check(
        "    dockerImage",
        "    instances: 0\n    dockerImage",
        Code::OutOfRange,
        "/taskRoles/main/instances",
        8,
    );
    let second =
        "[true]\n  Main_: {dockerImage: image, resourcePerInstance: {cpu: 1, memoryMB: 100}, commands: [x]}";
    check("[true]", second, Code::Alike, "/taskRoles/Main_", 11);
    check("dockerImage: image", "dockerImage: other", Code::UnknownValue, "/taskRoles/main/dockerImage", 8);
    check("dockerImage: image", "x: 1", Code::Missing, "/taskRoles/main/dockerImage", 8);
    check("cpu: 1", "cpu: 0", Code::OutOfRange, "/taskRoles/main/resourcePerInstance/cpu", 9);
    check("cpu: 1, ", "", Code::Missing, "/taskRoles/main/resourcePerInstance/cpu", 9);
    check("[true]", "[]", Code::Blank, "/taskRoles/main/commands", 10);
    check("[true]", "[' ']", Code::Blank, "/taskRoles/main/commands", 10);
    check("name: train", "name: train\njobRetryCount: -3", Code::OutOfRange, "/jobRetryCount", 3);
    let git = "name: train\nextras: {com.microsoft.pai.runtimeplugin: [{plugin: git}]}";
    let pointer = "/extras/com.microsoft.pai.runtimeplugin/0/plugin";
    check("name: train", git, Code::Unsupported, pointer, 3);
    let circle = "uri: 'ubuntu:22.04', require: [b]}\n  - {name: b, type: script, uri: x, require: [image]}";
    check("uri: 'ubuntu:22.04'}", circle, Code::Cycle, "/prerequisites", 5);
    let itself = "uri: 'ubuntu:22.04', require: [image]}";
    check("uri: 'ubuntu:22.04'}", itself, Code::Cycle, "/prerequisites", 5);
}

#[test]
fn dlc_determined_and_our_own() {
    check(DLC, "PyTorchJob", "MPIJob", Code::UnknownValue, "/kind", 2);
    check(DLC, "worker_count=1", "worker_count=0", Code::OutOfRange, "/worker_count", 3);
    check(DLC, "name=train", "name=my job", Code::BadName, "/name", 1);
    check(DLC, "kind=PyTorchJob", "#", Code::Missing, "/kind", 1);
    for (line, code, field) in [
        ("worker_cpu=0", Code::OutOfRange, "/worker_cpu"),
        ("worker_cpu=some", Code::WrongType, "/worker_cpu"),
        ("worker_gpu=-1", Code::OutOfRange, "/worker_gpu"),
        ("worker_shared_memory=8X", Code::BadSize, "/worker_shared_memory"),
        ("interactive=perhaps", Code::WrongType, "/interactive"),
    ] {
        check(DLC, "command=true", &format!("command=true\n{line}"), code, field, 6);
    }
    check(DLC, "worker_image=ubuntu:22.04", "#", Code::Missing, "/worker_image", 1);
    check(DLC, "command=true", "command=", Code::Blank, "/command", 5);
    check(DLC, "command=true", "command=true\npriority=10", Code::OutOfRange, "/priority", 6);
    check(DLC, "command=true", "command=true\nworker_memory=much", Code::BadSize, "/worker_memory", 6);
    check(DLC, "command=true", "command=true\nnonsense", Code::Syntax, "", 6);

    let d = |from, to, code, pointer, line| check(DETERMINED, from, to, code, pointer, line);
    d("slots: 1", "slots: -1", Code::OutOfRange, "/resources/slots", 2);
    d("slots: 1", "is_single_node: true", Code::Unsupported, "/resources/is_single_node", 2);
    d("slots: 1", "shm_size: 1X", Code::BadSize, "/resources/shm_size", 2);
    d("/gdata/a", "/", Code::OutsideStorage, "/bind_mounts/0/host_path", 6);
    d("/gdata/a", "/etc/shadow", Code::OutsideStorage, "/bind_mounts/0/host_path", 6);
    d("/gdata/a", "/gdata/../etc", Code::BadPath, "/bind_mounts/0/host_path", 6);
    d("/gdata/a", "relative", Code::BadPath, "/bind_mounts/0/host_path", 6);
    d("/gdata/a", "/gdata2", Code::OutsideStorage, "/bind_mounts/0/host_path", 6);
    d("container_path: /data", "container_path: .", Code::BadPath, "/bind_mounts/0/container_path", 7);
    d("image: ubuntu:22.04", "pod_spec: {}", Code::Unsupported, "/environment/pod_spec", 4);
    d(
        "image: ubuntu:22.04",
        "environment_variables: [A]",
        Code::BadVariable,
        "/environment/environment_variables/0",
        4,
    );
    let of_cpu = "image: {cpu: ubuntu:22.04}";
    d("image: ubuntu:22.04", of_cpu, Code::Missing, "/environment/image/cuda", 4);
    d("environment:", "entrypoint: []\nenvironment:", Code::Blank, "/entrypoint", 3);
    d("environment:", "idle_timeout: soon\nenvironment:", Code::BadDuration, "/idle_timeout", 3);

    let b = |from, to, code, pointer, line| check(BERTH, from, to, code, pointer, line);
    b("berth: 1", "berth: 2", Code::UnknownValue, "/berth", 1);
    b("image: ubuntu:22.04\n", "", Code::Missing, "/image", 1);
    b("command: python train.py\n", "", Code::Missing, "/command", 1);
    b("python train.py", "''", Code::Blank, "/command", 4);
    b("memory: 1G", "memory: 1M", Code::OutOfRange, "/memory", 5);
    b("memory: 1G", "memory: lots", Code::BadSize, "/memory", 5);
    b("memory: 1G", "retries: -1", Code::OutOfRange, "/retries", 5);
    b("memory: 1G", "time_limit: 0", Code::BadDuration, "/time_limit", 5);
    b("memory: 1G", "priority: 0", Code::OutOfRange, "/priority", 5);
    b("memory: 1G", "program: [a]", Code::Both, "/command", 4);
    b("memory: 1G", "mounts: [{from: other/a, to: /a}]", Code::OutsideStorage, "/mounts/0/from", 5);
    b("memory: 1G", "mounts: [{from: shared/a, to: a}]", Code::BadPath, "/mounts/0/to", 5);
    b("memory: 1G", "tasks: 0", Code::OutOfRange, "/tasks", 5);
    b("memory: 1G", "roles: []", Code::Blank, "/roles", 5);
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let text = V1.replace("\"train\"", "\"a b\"").replace("1024", "1").replace("\"true\"", "\"\"");
    let codes: Vec<_> = errors(&text).into_iter().map(|note| note.code).collect();
    assert_eq!(codes, [Code::BadName, Code::OutOfRange, Code::Blank]);
}

#[test]
fn unknown_keys_are_kept_and_warned_about() {
    let text = V1.replace("\"cpuNumber\"", "\"cpuNumbr\": 8, \"cpuNumber\"");
    let reading = read(text.as_bytes(), &site());
    let [note] = reading.notes.as_slice() else { panic!("{:?}", reading.notes) };
    assert_eq!(
        (note.level, note.code, note.param("nearest")),
        (Level::Warning, Code::UnknownKey, "cpuNumber")
    );
    assert_eq!(reading.spec.unwrap().kept["/taskRoles/0/cpuNumbr"], 8);
}

#[test]
fn hostile_files_are_refused_quickly() {
    let codes = |bytes: &[u8]| {
        let notes = read(bytes, &Site::default()).notes;
        notes.into_iter().map(|note| note.code).collect::<Vec<_>>()
    };
    let large = vec![b'a'; 10 << 20];
    assert_eq!(codes(&large), [Code::FileTooLarge]);
    assert_eq!(codes(&[0xff, 0xfe, b'a']), [Code::NotUtf8]);
    assert_eq!(codes(b" \n\t"), [Code::NothingInIt]);
    assert_eq!(codes(b"hello"), [Code::UnknownFormat]);
    assert_eq!(codes(b"- a\n- b\n"), [Code::UnknownFormat]);
    assert_eq!(codes(b"{\"jobName\": }"), [Code::Syntax]);
    assert_eq!(codes(b"berth: 1\n\tname: a\n"), [Code::Syntax]);
    assert_eq!(codes(b"berth: 1\n---\nberth: 1\n"), [Code::Syntax]);
    // Ten levels of ten: ten thousand million values.
    let level = |level: usize| {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        format!("a{level}: &a{level} [{aliases}]")
    };
    let mut bomb = vec!["a0: &a0 [x,x,x,x,x,x,x,x,x,x]".to_owned()];
    bomb.extend((1..10).map(level));
    assert_eq!(codes(bomb.join("\n").as_bytes()), [Code::TooManyValues]);
    assert_eq!(codes(b"berth: 1\nenv: &e\n  a: *e\n"), [Code::Cycle]);
    assert_eq!(codes(format!("berth: {}", "[".repeat(500)).as_bytes()), [Code::TooDeep]);
    assert_eq!(codes("{\"a\":".repeat(60_000).as_bytes()), [Code::TooDeep]);
    let keys: Vec<_> = (0..40_000).map(|number| format!("k{number}: 1")).collect();
    assert!(codes(format!("berth: 1\n{}", keys.join("\n")).as_bytes()).len() <= 400);
}

#[test]
fn aliases_and_merges_that_are_no_bombs_are_read() {
    let text =
        "berth: 1\nname: a\nroles:\n- &one\n  name: a\n  image: u\n  command: x\n- {<<: *one, name: b}\n";
    let spec = read(text.as_bytes(), &Site::default()).spec.unwrap();
    let names: Vec<_> = spec.roles.iter().map(|role| role.name.as_str()).collect();
    assert_eq!((names, spec.roles[1].image.as_deref()), (vec!["a", "b"], Some("u")));
}
