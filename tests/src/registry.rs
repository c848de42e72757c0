//! A registry for one test: Debian's own, started as `make up` starts it, with its password.

mod faults;

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use reqwest::StatusCode;
use tempfile::TempDir;

pub use self::faults::{Fault, Faults};
use crate::{LIMIT, OrFail as _, Port, Program, engine, http_client, wait_until};

/// A registry on the loopback. Dropping it ends it and removes its files.
#[derive(Debug)]
pub struct Registry {
    folder: TempDir,
    /// Where it listens itself.
    inside: String,
    _port: Port,
    faults: Option<Faults>,
    program: Option<Program>,
}

impl Registry {
    pub async fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("berth-registry-").tempdir_in("/tmp");
        let folder = folder.or_fail("make a folder for a registry");
        let port = Port::reserve();
        let inside = format!("127.0.0.1:{port}");
        let mut registry = Self { folder, inside, _port: port, faults: None, program: None };
        registry.start_again().await;
        registry
    }

    /// One that can be made to seem unwell.
    pub async fn start_with_faults() -> Self {
        let mut registry = Self::start().await;
        registry.faults = Some(Faults::before(&registry.inside));
        registry
    }

    #[track_caller]
    pub fn faults(&self) -> &Faults {
        self.faults.as_ref().or_fail("find what makes faults")
    }

    /// One that asks nobody who they are.
    pub async fn start_open() -> Self {
        Self::start_as("").await
    }

    /// One that has nothing of its own: it fetches what it is asked for from another one, and keeps it.
    pub async fn start_relay_of(other: &Self) -> Self {
        Self::start_as(&format!("proxy:\n  remoteurl: http://{}\n", other.inside)).await
    }

    /// With the settings of `make up`, but for who may come in, and with more of them.
    async fn start_as(settings: &str) -> Self {
        let mut registry = Self::start().await;
        registry.kill();
        let usual = std::fs::read_to_string(registry.files().join("config.yml")).or_fail("read settings");
        let open = usual.split("auth:").next().unwrap_or_default();
        let file = registry.folder.path().join("open.yml");
        std::fs::write(&file, format!("{open}{settings}")).or_fail("write settings");
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(file);
        registry.program = Some(Program::start("registry", command, registry.folder.path()));
        registry.answers(StatusCode::OK).await;
        registry
    }

    /// Starts it on what it had.
    pub async fn start_again(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("deploy/up/registry.sh");
        let mut command = Command::new(script);
        command.arg("serve").arg(self.files()).arg(self.password_file()).arg(&self.inside);
        self.program = Some(Program::start("registry", command, self.folder.path()));
        self.answers(StatusCode::UNAUTHORIZED).await;
    }

    async fn answers(&self, status: StatusCode) {
        let address = format!("http://{}/v2/", self.inside);
        wait_until("the registry answers", LIMIT, async || {
            http_client().get(&address).send().await.ok().filter(|answer| answer.status() == status)
        })
        .await;
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.program.take().or_fail("kill the registry").kill();
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.faults.as_ref().map_or(&self.inside, Faults::address)
    }

    /// What makes a Berth use it.
    pub fn config(&self) -> String {
        let (address, password) = (self.address(), self.password_file());
        let settings = format!(
            "registry = \"{address}\"\nregistry_user = \"berth\"\nregistry_password_file = \"{}\"\n",
            password.display()
        );
        let files = self.files();
        format!("[gateway]\n{settings}[envd]\nregistry_files = \"{}\"\n{settings}", files.display())
    }

    /// Of its only user, `berth`.
    pub fn password(&self) -> String {
        let password = std::fs::read_to_string(self.password_file()).or_fail("read a password");
        password.trim_end().to_owned()
    }

    /// What the gateway believes to be the password; the registry itself knows its own.
    pub fn set_password_file(&self, password: &str) {
        std::fs::write(self.password_file(), password).or_fail("write a password");
    }

    fn password_file(&self) -> PathBuf {
        self.folder.path().join("password")
    }

    /// Where its files are.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// All that it keeps, manifests and configs too: layers as they are before compression.
    #[track_caller]
    pub fn contents(&self) -> Vec<Vec<u8>> {
        let (mut folders, mut contents) = (vec![self.files().join("docker")], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).or_fail("read a folder").flatten() {
                if entry.file_type().or_fail("look at a file").is_dir() {
                    folders.push(entry.path());
                } else {
                    contents.push(uncompressed(&entry.path()));
                }
            }
        }
        contents
    }
}

#[track_caller]
fn uncompressed(file: &Path) -> Vec<u8> {
    let bytes = std::fs::read(file).or_fail("read a file");
    let program = match bytes[..] {
        [0x1f, 0x8b, ..] => "gzip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        _ => return bytes,
    };
    let output = Command::new(program).arg("-dc").stdin(File::open(file).or_fail("open a file")).output();
    let output = output.or_fail(program);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

impl Drop for Registry {
    fn drop(&mut self) {
        engine::forget_images_of(self.address());
    }
}
