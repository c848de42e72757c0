//! One of every error, as users can meet it.

use super::*;

pub(crate) fn all() -> Vec<Error> {
    let boxed = || BoxError::from("the cause");
    let all = vec![
        Error::Unauthenticated,
        Error::BadCredentials,
        Error::TooManyAttempts { seconds: 30 },
        Error::TooManyOpen { what: "logs", limit: 32 },
        Error::TooManyReaders,
        Error::PasswordChangeRequired,
        Error::CrossSite,
        Error::Forbidden { why: "only an admin may do this" },
        Error::NotFound { kind: "instance", name: "trian".to_owned() },
        Error::NoSuchRoute,
        Error::NoSuchMethod,
        Error::BadName("a b".parse::<gateway_api::InstanceName>().unwrap_err()),
        Error::BadName("Alice".parse::<gateway_api::UserName>().unwrap_err()),
        Error::BadName("".parse::<gateway_api::TokenName>().unwrap_err()),
        Error::NameTaken { name: "train".to_owned() },
        Error::AlreadyExists { kind: "group", name: "vision".to_owned() },
        Error::UserRemoved { name: "alice".to_owned(), until: "2026-01-31T12:00:00Z".parse().unwrap() },
        Error::LastAdmin { name: "admin".to_owned() },
        Error::InUse { kind: "group", name: "vision".to_owned(), why: "it has members" },
        Error::BadImage { reference: "Python".to_owned(), reason: Reason::ImageNotLowerCase },
        Error::NoImage { reference: "localhost/berth/bse".to_owned(), reason: Reason::ImageNotOnThisMachine },
        Error::ImageNotFound {
            reference: "python:3.99".to_owned(),
            why: "docker.io answered `manifest unknown`".to_owned(),
        },
        Error::RegistryDenied {
            reference: "registry.example.org/team/image:1".to_owned(),
            registry: "registry.example.org".to_owned(),
            why: "no basic auth credentials".to_owned(),
        },
        Error::RegistryUnreachable {
            reference: "registry.example.org/team/image:1".to_owned(),
            registry: "registry.example.org".to_owned(),
            why: "connection refused".to_owned(),
        },
        Error::RegistryNotAllowed {
            reference: "registry.example.org/team/image:1".to_owned(),
            registry: "registry.example.org".to_owned(),
            allowed: "`docker.io`".to_owned(),
        },
        Error::BadValue { field: "cpus", why: "it must be more than 0".to_owned() },
        Error::TooLarge { field: "cpus", wanted: "64".to_owned(), largest: "2".to_owned() },
        Error::WeakPassword { reason: Reason::PasswordTooShort },
        Error::WrongState { name: "train".to_owned(), state: "stopped", action: Action::Stop },
        Error::BadJobFile { notes: Vec::new() },
        Error::WrongJobState { name: "train".to_owned(), state: "succeeded", action: JobAction::Stop },
        Error::NeedsMoreMachines { tasks: 8, fit: 2 },
        Error::OverQuota {
            resource: "gpus".to_owned(),
            wanted: "2".to_owned(),
            used: "3".to_owned(),
            limit: "4".to_owned(),
        },
        Error::NotHere { kind: "gpu", name: "h900".to_owned(), known: "a100".to_owned() },
        Error::BadBody { why: "unknown field `cpu`".to_owned(), pointer: Some("/cpu".to_owned()) },
        Error::Malformed,
        Error::UnknownField { field: "cpu".to_owned(), pointer: "/cpu".to_owned() },
        Error::BodyTooLarge { limit: 65536 },
        Error::ClusterUnreachable(boxed()),
        Error::AgentUnreachable { name: "train".to_owned(), why: "it is not linked".to_owned() },
        Error::AppsUnavailable,
        Error::NoRegistry,
        Error::BeingSaved { name: "train".to_owned() },
        Error::SaveRefused { why: "its container is gone".to_owned() },
        Error::ImageQuota {
            wanted: "3.0 GiB".to_owned(),
            used: "9.0 GiB".to_owned(),
            limit: "10.0 GiB".to_owned(),
        },
        Error::ImageInUse { name: "alice/train:1".to_owned(), by: "bob/eval".to_owned() },
        Error::DiskFull(boxed()),
        Error::Internal(boxed()),
    ];
    all.into_iter().chain(Reason::ALL.map(|reason| Error::unfit("field", reason))).collect()
}
