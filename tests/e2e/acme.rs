//! A certificate from an authority: Debian's `pebble`, which speaks ACME as the real ones do, and refuses some requests
//! at random as they may.

use std::{
    path::Path,
    process::{Command, Output},
};

use tests::{LIMIT, OrFail as _, Port, Program, programs, wait_until, wait_until_agreed};

const DOMAIN: &str = "berth.example.org";

struct Ports {
    site: Port,
    ssh: Port,
    authority: Port,
    authority_info: Port,
    names: Port,
    unused: Port,
}

impl Ports {
    fn find() -> Self {
        Self {
            site: Port::reserve(),
            ssh: Port::reserve(),
            authority: Port::reserve(),
            authority_info: Port::reserve(),
            names: Port::reserve(),
            unused: Port::reserve(),
        }
    }
}

/// A certificate for the authority's own door, which the gateway is told to trust.
fn write_own_certificate(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).or_fail("make a certificate");
    std::fs::write(folder.join("own.pem"), made.cert.pem()).or_fail("write a certificate");
    std::fs::write(folder.join("own.key"), made.signing_key.serialize_pem()).or_fail("write a key");
}

/// The authority, and the name server by which it finds the domain.
fn start_authority(folder: &Path, ports: &Ports) -> [Program; 2] {
    let config = serde_json::json!({"pebble": {
        "listenAddress": format!("127.0.0.1:{}", ports.authority),
        "managementListenAddress": format!("127.0.0.1:{}", ports.authority_info),
        "certificate": folder.join("own.pem"),
        "privateKey": folder.join("own.key"),
        "httpPort": ports.unused.number,
        "tlsPort": ports.site.number,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": false,
    }});
    let file = folder.join("pebble.json");
    std::fs::write(&file, config.to_string()).or_fail("write the authority's settings");
    let server = format!("127.0.0.1:{}", ports.names);
    let mut names = Command::new("pebble-challtestsrv");
    names.args(["-dns01", &server, "-http01", "", "-https01", "", "-tlsalpn01", ""]);
    names.args(["-management", &format!("127.0.0.1:{}", ports.unused)]);
    names.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]);
    let mut authority = Command::new("pebble");
    authority.env("PEBBLE_VA_NOSLEEP", "1").arg("-config").arg(file).args(["-dnsserver", &server]);
    [Program::start("names", names, folder), Program::start("authority", authority, folder)]
}

fn start_gateway(folder: &Path, ports: &Ports) -> Program {
    let mut gateway = Command::new(programs().join("gateway"));
    gateway.env("BERTH_DATA", folder.join("data")).env("SSL_CERT_FILE", folder.join("own.pem"));
    gateway.env("BERTH_HTTP", format!("127.0.0.1:{}", ports.site));
    gateway.env("BERTH_SSH", format!("127.0.0.1:{}", ports.ssh));
    Program::start("gateway", gateway, folder)
}

fn curl(arguments: &[&str]) -> Output {
    Command::new("curl").args(["-sS", "--max-time", "10"]).args(arguments).output().or_fail("start curl")
}

/// Asks the site as a browser does that trusts the authority and nobody else.
async fn wait_for_site(root: &Path, ports: &Ports) {
    let resolve = format!("{DOMAIN}:{}:127.0.0.1", ports.site);
    let url = format!("https://{DOMAIN}:{}/healthz", ports.site);
    // The authority refuses some requests at random, and the gateway retries them after a pause.
    let answer = wait_until_agreed("the site has a certificate of the authority", 5 * LIMIT, async || {
        let root = root.to_str().or_fail("write a path");
        let asked = curl(&["--include", "--cacert", root, "--resolve", &resolve, &url]);
        let answer = String::from_utf8_lossy(&asked.stdout).into_owned();
        let is_well = answer.contains(r#"{"name":"tls","ok":true}"#);
        if is_well { Ok(answer) } else { Err(format!("{answer}{}", String::from_utf8_lossy(&asked.stderr))) }
    })
    .await;
    // Browsers that were here once do not come back over plain HTTP.
    assert!(answer.to_lowercase().contains("strict-transport-security: max-age="), "{answer}");
}

#[tokio::test]
async fn an_authority_gives_a_certificate_and_a_restart_keeps_it() {
    let folder = tempfile::tempdir().or_fail("make a directory");
    let (folder, ports) = (folder.path(), Ports::find());
    write_own_certificate(folder);
    std::fs::create_dir(folder.join("data")).or_fail("make a data directory");
    let config = format!(
        "[gateway.tls.acme]\ndomains = [\"{DOMAIN}\"]\nemail = \"ops@example.org\"\n\
         directory = \"https://localhost:{}/dir\"\n",
        ports.authority
    );
    std::fs::write(folder.join("data/berth.toml"), config).or_fail("write the configuration");
    let authority = start_authority(folder, &ports);
    let root = folder.join("root.pem");
    let url = format!("https://localhost:{}/roots/0", ports.authority_info);
    wait_until("the authority shows its root", LIMIT, async || {
        let own = folder.join("own.pem");
        let asked = curl(&["--fail", "--cacert", own.to_str().or_fail("write a path"), &url]);
        asked.status.success().then(|| std::fs::write(&root, asked.stdout).or_fail("write the root"))
    })
    .await;

    let gateway = start_gateway(folder, &ports);
    wait_for_site(&root, &ports).await;

    drop((gateway, authority));
    let _gateway = start_gateway(folder, &ports);
    wait_for_site(&root, &ports).await;
}
