//! The calls about secrets.

use reqwest::Method;

use super::{Client, ClientError};
use crate::{
    Page,
    secret::{Secret, SetSecret},
};

/// Whose secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretsOf {
    Me,
    /// For admins.
    Site,
}

impl SecretsOf {
    fn word(self) -> &'static str {
        match self {
            Self::Me => "me",
            Self::Site => "site",
        }
    }
}

impl Client {
    /// By name, without their values.
    pub async fn secrets(&self, of: SecretsOf) -> Result<Vec<Secret>, ClientError> {
        Ok(self.get::<Page<Secret>>(&[of.word(), "secrets"]).await?.items)
    }

    pub async fn set_secret(
        &self,
        of: SecretsOf,
        name: &str,
        secret: &SetSecret,
    ) -> Result<Secret, ClientError> {
        self.call(Method::PUT, &[of.word(), "secrets", name], Some(secret)).await
    }

    pub async fn remove_secret(&self, of: SecretsOf, name: &str) -> Result<(), ClientError> {
        self.tell(Method::DELETE, &[of.word(), "secrets", name], None::<&()>).await
    }
}
