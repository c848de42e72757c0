//! The calls about apps and ports.

use reqwest::Method;

use super::{Client, ClientError, Process, process::Framing};
use crate::{
    AppName, Instance,
    app::{ActOnApp, App, CreateTensorboard, OpenApp, Opened},
};

impl Client {
    pub async fn app(&self, instance: &str, app: AppName) -> Result<App, ClientError> {
        self.get(&["instances", instance, "apps", &app.to_string()]).await
    }

    pub async fn act_on_app(&self, instance: &str, app: AppName, act: &ActOnApp) -> Result<App, ClientError> {
        self.call(Method::POST, &["instances", instance, "apps", &app.to_string()], Some(act)).await
    }

    /// An address that signs one browser in, once.
    pub async fn open_app(
        &self,
        instance: &str,
        app: AppName,
        wanted: &OpenApp,
    ) -> Result<Opened, ClientError> {
        let path = ["instances", instance, "apps", &app.to_string(), "open"];
        self.call(Method::POST, &path, Some(wanted)).await
    }

    /// An instance of its own that shows a folder's event files.
    pub async fn create_tensorboard(&self, wanted: &CreateTensorboard) -> Result<Instance, ClientError> {
        self.call(Method::POST, &["tensorboards"], Some(wanted)).await
    }

    /// Connects to a port on the instance's loopback. What is written goes there, what comes from there is heard as
    /// standard output; it ends without an exit, or with a problem when nothing listens there.
    pub async fn port(&self, instance: &str, port: u16) -> Result<Process, ClientError> {
        let url = self.url(&["instances", instance, "ports", &port.to_string()])?;
        Process::connect(self, url, Framing::Plain).await
    }
}
