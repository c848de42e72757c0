use std::path::Path;

use super::*;

const EXAMPLE: &str = include_str!("../../../deploy/berth.example.toml");

fn read(text: &str, http: Option<&str>) -> Result<Config, Mistakes> {
    Config::from_parts(Path::new("/data"), text, |name| (name == "BERTH_HTTP").then_some(http?.to_owned()))
}

fn mistakes(text: &str) -> String {
    read(text, None).unwrap_err().to_string()
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let check = |text, variable, port: u16, said: &str| {
        let config = read(text, variable).unwrap();
        assert_eq!(config.http.port(), port);
        let setting = config.settings.iter().find(|setting| setting.key == "http").unwrap();
        assert_eq!(setting.to_string(), said);
    };
    check("", None, 8080, r#"http = "127.0.0.1:8080" (default)"#);
    check("[gateway]\nhttp = '127.0.0.1:9'", None, 9, r#"http = "127.0.0.1:9" (berth.toml)"#);
    check("[gateway]\nhttp = '127.0.0.1:9'", Some("[::1]:7"), 7, r#"http = "[::1]:7" (BERTH_HTTP)"#);
}

#[test]
fn every_mistake_is_named_at_once() {
    let found = read("[gatewy]\n[envd]\nanything = 1", Some("nowhere")).unwrap_err().to_string();
    assert!(found.contains("[gatewy]") && found.contains("nowhere"), "{found}");
    let found = mistakes(
        "[gateway]\nhtpp = 'x'\nurl = 'berth'\nheaders_max_bytes = 1\nold_addresses = ['here']\n\
         dangerous_plain_http = 1\n[gateway.tls]\ncert = '/none.pem'\nkey = '/none.key'\n[gateway.tsl]\n",
    );
    for word in ["htpp", "`berth`", "headers_max_bytes", "`here`", "dangerous_plain_http", "/none.pem", "tsl"]
    {
        assert!(found.contains(word), "{word}: {found}");
    }
    assert_eq!(found.lines().count(), 7, "{found}");
}

#[test]
fn tls_is_one_of_three() {
    let tls = |text: &str| read(&format!("[gateway.tls]\n{text}"), None).map(|config| config.tls.unwrap());
    assert!(matches!(tls("self_signed = true").unwrap().certificate, Certificate::SelfSigned { .. }));
    let acme = "[gateway.tls.acme]\ndomains = ['b.example.org']\nemail = 'ops@example.org'";
    assert!(matches!(tls(acme).unwrap().certificate, Certificate::Acme { .. }));
    for wrong in
        ["", "self_signed = false", "cert = '/a'", &format!("self_signed = true\n{acme}"), "names = ['a']"]
    {
        assert!(tls(wrong).is_err(), "{wrong}");
    }
    let site = "[gateway]\nurl = 'https://berth.example.org:8443'\n[gateway.apps]\ndomain = 'apps.example.org'\n\
                [gateway.tls]\nself_signed = true\nnames = ['192.0.2.7']";
    let names = ["192.0.2.7", "berth.example.org", "*.apps.example.org"].map(str::to_owned).to_vec();
    let certificate = read(site, None).unwrap().tls.unwrap().certificate;
    assert_eq!(certificate, Certificate::SelfSigned { names }, "apps are named too");
    assert!(read("[gateway]\ndangerous_plain_http = true\n[gateway.tls]\nself_signed = true", None).is_err());
    assert!(read("[gateway]\nold_addresses = ['127.0.0.1:7443']", None).is_err(), "they lead nowhere");
}

#[test]
fn acme_cannot_have_a_wildcard() {
    let acme = |apps: &str, domain: &str| {
        let acme = format!("[gateway.tls.acme]\ndomains = ['{domain}']\nemail = 'ops@example.org'");
        read(&format!("[gateway.apps]\n{apps}\n{acme}"), None).map_err(|mistakes| mistakes.to_string())
    };
    let found = acme("domain = 'apps.example.org'", "berth.example.org").unwrap_err();
    for word in ["`*.apps.example.org`", "`cert` and `key`", "`gateway.apps.mode = \"path\"`"] {
        assert!(found.contains(word), "{word}: {found}");
    }
    assert!(acme("", "*.apps.example.org").unwrap_err().contains("single hosts"));
    assert!(acme("", "berth.example.org").is_ok(), "a site without a domain of apps");
    assert!(acme("domain = 'apps.example.org'\nmode = 'path'", "berth.example.org").is_ok(), "path mode");
}

#[test]
fn the_public_address_of_ssh_is_a_host_and_a_port() {
    let public = |text: &str| read(&format!("[gateway]\nssh_public = '{text}'"), None);
    for (text, host, port) in [
        ("ssh.example.org:22", "ssh.example.org", 22),
        ("192.0.2.7:2222", "192.0.2.7", 2222),
        ("[2001:db8::7]:22", "2001:db8::7", 22),
    ] {
        assert_eq!(public(text).unwrap().ssh_public, Some((host.to_owned(), port)), "{text}");
    }
    for wrong in
        ["ssh.example.org", "22", ":22", "ssh.example.org:0", "alice@host:22", "ssh://host:22", "a b:22"]
    {
        let found = public(wrong).unwrap_err().to_string();
        assert!(found.contains(wrong) && found.contains("`ssh.example.org:22`"), "{found}");
    }
}

/// The example with every setting in it switched on.
fn switched_on() -> String {
    let line = |line: &'static str| {
        line.strip_prefix('#')
            .filter(|rest| {
                rest.starts_with(|first: char| first.is_ascii_lowercase() || "[\"".contains(first))
            })
            .unwrap_or(line)
    };
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_changes_nothing_and_documents_every_key() {
    let shown = |config: Config| config.settings;
    assert_eq!(
        shown(read(EXAMPLE, None).unwrap()),
        shown(read("", None).unwrap()),
        "the example sets something"
    );

    let (text, nothing) = (switched_on(), |_: &str| None);
    let mut reader = Reader::new(&text, &nothing);
    let _ = Config::take(Path::new("/data"), &mut reader);
    let not_documented: Vec<_> = reader
        .settings()
        .iter()
        .filter(|setting| setting.source != reader::Source::File)
        .map(|setting| setting.key)
        .collect();
    assert!(not_documented.is_empty(), "not in deploy/berth.example.toml: {not_documented:?}");
    // The three ways to a certificate exclude each other; nothing else may be wrong.
    let Mistakes(mistakes) = reader.finish().unwrap_err();
    assert!(mistakes.iter().all(|mistake| mistake.contains("exactly one of")), "{mistakes:?}");
}

#[test]
fn the_example_shows_the_defaults() {
    let defaults = read("", None).unwrap().settings;
    let (text, nothing) = (switched_on(), |_: &str| None);
    let mut reader = Reader::new(&text, &nothing);
    let _ = Config::take(Path::new("/data"), &mut reader);
    for (shown, default) in reader.settings().iter().zip(defaults) {
        // Where there is no default the example shows one that could be.
        let has_one = default.value.as_deref().is_some_and(|value| !matches!(value, "[]" | "{}" | "false"));
        if has_one {
            assert_eq!(shown.value, default.value, "{}", shown.key);
        }
    }
}

#[test]
fn clusters_pools_and_shares_are_tables() {
    let none = read("", None).unwrap();
    let own = ClusterSetting { name: "default".to_owned(), data: none.data.clone() };
    assert_eq!((none.clusters, none.pools), (vec![own], vec![]));
    assert_eq!(none.shares.iter().map(|share| share.name.as_str()).collect::<Vec<_>>(), ["default"]);

    let cluster =
        |text: &str| mistakes(&format!("[[gateway.cluster]]\nname = 'a'\n[[gateway.cluster]]\n{text}"));
    assert!(cluster("name = 'b'").contains("same data directory"));
    assert!(cluster("name = 'a'\ndata = 'b'").contains("two called `a`"));
    assert!(cluster("name = 'a b'\ndata = 'b'").contains("is no name"));
    assert!(
        cluster("name = 'b'\ndata = 'b'\naddress = '192.0.2.7:7000'")
            .contains("another machine is not supported")
    );
    let pool = |text: &str| mistakes(&format!("[[gateway.pool]]\nname = 'dev'\n{text}"));
    assert!(pool("kinds = []").contains("`kinds` is empty"));
    assert!(pool("kinds = ['batch']").contains("unknown variant"));
    assert!(pool("cluster = 'b'").contains("no cluster `b`"));
    assert!(pool("[gateway.jobs]\npools = ['old']").contains("does not go with"));
    let share =
        "[[gateway.share]]\nname = 'vision'\ncpus = 1.5\nmemory_gib = 2\ngpus_by_model = { V100 = 4 }";
    let limits = read(share, None).unwrap().shares[0].limits();
    assert_eq!((limits.cpus_milli, limits.memory_mib, limits.gpus), (Some(1500), Some(2048), None));
    assert_eq!(limits.gpus_by_model, [("V100".to_owned(), 4)].into());
}

#[test]
fn old_paths_and_registries_are_the_sites_own_keys() {
    let text = r#"
        [gateway.aliases.paths]
        "/home/{user}" = "home"
        [gateway.aliases.registries]
        "old.example.org:5000" = "new.example.org"
    "#;
    let config = read(text, None).unwrap();
    assert_eq!(config.jobs.old_paths, [("/home/{user}".to_owned(), "home".to_owned())].into());
    let registries = [("old.example.org:5000".to_owned(), "new.example.org".to_owned())];
    assert_eq!(config.jobs.old_registries, registries.into());
    for wrong in
        ["\"home\" = \"home\"", "\"/a/../b\" = \"home\"", "\"/a\" = \"/etc\"", "\"/a\" = \"home/..\""]
    {
        assert!(read(&format!("[gateway.aliases.paths]\n{wrong}"), None).is_err(), "{wrong}");
    }
    let read = |pair: &str| read(&format!("[gateway.aliases.registries]\n{pair}"), None);
    assert!(read("\"old.example.org:5000/lab\" = \"localhost/berth\"").is_ok());
    for wrong in [
        "\"https://old.example.org\" = \"new.example.org\"",
        "\"old.example.org/\" = \"new.example.org\"",
        "\"old.example.org/a:1\" = \"new.example.org\"",
        "\"old.example.org\" = \"\"",
        "\"old.example.org\" = \"new example\"",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
