//! Users' own storage, with no instance.

use envd_api::client::ClientError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::App;
use crate::auth::Caller;

impl App {
    /// SFTP on the storages that an instance of the caller would get.
    pub(crate) async fn own_storage(
        &self,
        caller: &Caller,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, ClientError> {
        let (user, group) = (&caller.user.home, caller.user.group.as_str());
        self.clusters.first().envd.storage_sftp(user, group).await
    }
}
