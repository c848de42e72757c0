//! The calls about apps.

use reqwest::Method;

use super::{Client, ClientError};
use crate::{
    AppName, Instance,
    app::{ActOnApp, App, CreateTensorboard, OpenApp, Opened},
};

impl Client {
    pub async fn app(&self, instance: &str, app: AppName) -> Result<App, ClientError> {
        self.get(&["instances", instance, "apps", &app.to_string()]).await
    }

    pub async fn act_on_app(
        &self,
        instance: &str,
        app: AppName,
        act: &ActOnApp,
    ) -> Result<App, ClientError> {
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
}
