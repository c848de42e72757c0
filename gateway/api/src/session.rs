//! Signing in, and who one is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    name::{GroupName, UserName},
    words::Language,
};

/// The longest password that is looked at: hashing a longer one would be a way to burn the server's time.
pub const PASSWORD_MAX_BYTES: usize = 1024;
/// The shortest password that a user may choose.
pub const PASSWORD_MIN_CHARS: usize = 8;

/// How the signed-in one keeps the session: a browser in a cookie, the command line as a bearer token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    Browser,
    Cli,
}

/// The body of a sign-in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    pub user: String,
    pub password: String,
    pub client: ClientKind,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SignIn")
            .field("user", &self.user)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The body of a browser's sign-in with a ticket that `open` gave for a page of the console.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInByTicket {
    pub ticket: String,
}

impl std::fmt::Debug for SignInByTicket {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SignInByTicket { .. }")
    }
}

/// The two ways to sign in.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SignInBody {
    Password(SignIn),
    Ticket(SignInByTicket),
}

/// By hand, so that a mistake is named as that of the one way or of the other.
impl<'de> Deserialize<'de> for SignInBody {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            ticket: Option<String>,
            user: Option<String>,
            password: Option<String>,
            client: Option<ClientKind>,
        }
        use serde::de::Error as _;
        let Fields { ticket, user, password, client } = Fields::deserialize(from)?;
        if let Some(ticket) = ticket {
            return if user.is_some() || password.is_some() || client.is_some() {
                Err(D::Error::custom("a ticket says all; leave out the other fields"))
            } else {
                Ok(Self::Ticket(SignInByTicket { ticket }))
            };
        }
        Ok(Self::Password(SignIn {
            user: user.ok_or_else(|| D::Error::missing_field("user"))?,
            password: password.ok_or_else(|| D::Error::missing_field("password"))?,
            client: client.ok_or_else(|| D::Error::missing_field("client"))?,
        }))
    }
}

/// The answer to a sign-in.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    pub me: Me,
    /// The bearer token, for the command line only; a browser gets a cookie that scripts cannot read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl std::fmt::Debug for SignedIn {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SignedIn").field("me", &self.me).finish_non_exhaustive()
    }
}

/// What someone may do on the whole site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything but stepping into what belongs to others.
    Admin,
    /// Sees the users and instances of the own group, and may stop the latter.
    Leader,
    User,
}

impl Role {
    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Leader => "leader",
            Self::User => "user",
        }
    }
}

/// The signed-in user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub name: UserName,
    pub role: Role,
    pub group: GroupName,
    /// True while the password is one that somebody else has seen.
    pub must_change_password: bool,
    /// The language that they have chosen; what is said to them outside the console is in it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
}

/// The body of a choice of language.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetLanguage {
    /// Absent: that of the browser or the terminal.
    #[serde(default)]
    pub language: Option<Language>,
}

/// The body of a change of password.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePassword {
    pub old: String,
    pub new: String,
}

impl std::fmt::Debug for ChangePassword {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ChangePassword { .. }")
    }
}
