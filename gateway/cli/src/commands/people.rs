//! `berth user`, `group`, `workspace`: who there is and who belongs where.

use clap::{Args, Subcommand, ValueEnum};
use gateway_api::{
    client::ClientError,
    people::{AddUser, ChangeUser, Group, NewPassword, User, Workspace},
    session::Role,
};
use jiff::Timestamp;

use super::Session;
use crate::{
    failure::{self, Status},
    output,
    words::{Title, Words},
};

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// List the users: all for an admin, the own group for its leader
    Ls(List),
    /// Add a user and print the first password
    Add(Add),
    /// Show everything about a user
    Show(Show),
    /// Keep users from signing in; their sessions and tokens end at once, their instances go on
    Disable(Names),
    /// Let disabled users sign in again
    Enable(Names),
    /// Remove users: sessions and tokens end and instances stop at once; files are kept
    ///
    /// For some days (30, unless the site says otherwise) `berth user restore` brings an account back. After that its
    /// instances are deleted and the name is free. The files are never deleted.
    Rm(Names),
    /// Bring a removed user back
    Restore(Names),
    /// Give a user a new random password and print it; sessions, tokens and SSH keys end, secrets are deleted
    ResetPassword(Show),
    /// Give a user another role
    Role(SetRole),
    /// Put a user into another group
    Group(SetGroup),
}

#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List the groups
    Ls(List),
    /// Add a group
    Add(Name),
    /// Show a group and its members
    Show(Show),
    /// Remove groups that have no members
    ///
    /// Their files in storages stay, and a later group of the same name gets them.
    Rm(Names),
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List your workspaces; an admin sees all
    Ls(List),
    /// Add a workspace
    Add(Name),
    /// Show a workspace and its members
    Show(Show),
    /// Remove workspaces
    Rm(Names),
    /// Put users into a workspace
    AddMember(Members),
    /// Take users out of a workspace
    RmMember(Members),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// Print names only
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Names {
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Members {
    workspace: String,
    #[arg(required = true, value_name = "USER")]
    users: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Lower-case letters, digits, `.`, `_` and `-`, 2 to 32 of them
    name: String,
    #[arg(long, value_enum, default_value_t = RoleWord::User)]
    role: RoleWord,
    /// The group [default: `default`]
    #[arg(long)]
    group: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SetRole {
    name: String,
    #[arg(value_enum)]
    role: RoleWord,
}

#[derive(Debug, Args)]
pub(crate) struct SetGroup {
    name: String,
    group: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleWord {
    Admin,
    /// Leads the own group
    Leader,
    User,
}

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Self {
        match word {
            RoleWord::Admin => Self::Admin,
            RoleWord::Leader => Self::Leader,
            RoleWord::User => Self::User,
        }
    }
}

pub(crate) async fn user(command: UserCommand, session: &Session) -> anyhow::Result<Status> {
    let client = &session.client;
    let switch = |disabled| ChangeUser { disabled: Some(disabled), ..ChangeUser::default() };
    match command {
        UserCommand::Ls(list) => {
            let users = client.users().await?;
            list.print(&users, |user| user.name.as_str(), |users| user_table(users, session.words))
        }
        UserCommand::Add(add) => {
            let body = AddUser { name: add.name, role: Some(add.role.into()), group: add.group };
            show_password(&client.add_user(&body).await?, add.json, session.words)
        }
        UserCommand::Show(show) => {
            let user = client.user(&show.name).await?;
            show.print(&user, &user_details(&user, session.words))
        }
        UserCommand::Disable(names) => {
            names.each(session, async |name| client.change_user(name, &switch(true)).await.map(drop)).await
        }
        UserCommand::Enable(names) => {
            names.each(session, async |name| client.change_user(name, &switch(false)).await.map(drop)).await
        }
        UserCommand::Rm(names) => {
            names
                .each(session, async |name| {
                    let user = client.remove_user(name).await?;
                    output::say(&session.words.user_removed(&user));
                    Ok(())
                })
                .await
        }
        UserCommand::Restore(names) => {
            names.each(session, async |name| client.restore_user(name).await.map(drop)).await
        }
        UserCommand::ResetPassword(show) => {
            show_password(&client.reset_password(&show.name).await?, show.json, session.words)
        }
        UserCommand::Role(set) => {
            let change = ChangeUser { role: Some(set.role.into()), ..ChangeUser::default() };
            done(client.change_user(&set.name, &change).await?.name.as_str())
        }
        UserCommand::Group(set) => {
            let change = ChangeUser { group: Some(set.group), ..ChangeUser::default() };
            done(client.change_user(&set.name, &change).await?.name.as_str())
        }
    }
}

pub(crate) async fn group(command: GroupCommand, session: &Session) -> anyhow::Result<Status> {
    let client = &session.client;
    match command {
        GroupCommand::Ls(list) => {
            let groups = client.groups().await?;
            list.print(&groups, |group| group.name.as_str(), |groups| group_table(groups, session.words))
        }
        GroupCommand::Add(add) => done(client.add_group(&add.name).await?.name.as_str()),
        GroupCommand::Show(show) => {
            let group = client.group(&show.name).await?;
            show.print(&group, &group_details(&group, session.words))
        }
        GroupCommand::Rm(names) => names.each(session, async |name| client.remove_group(name).await).await,
    }
}

pub(crate) async fn workspace(command: WorkspaceCommand, session: &Session) -> anyhow::Result<Status> {
    let client = &session.client;
    match command {
        WorkspaceCommand::Ls(list) => {
            let all = client.workspaces().await?;
            list.print(&all, |workspace| workspace.name.as_str(), |all| workspace_table(all, session.words))
        }
        WorkspaceCommand::Add(add) => done(client.add_workspace(&add.name).await?.name.as_str()),
        WorkspaceCommand::Show(show) => {
            let workspace = client.workspace(&show.name).await?;
            show.print(&workspace, &workspace_details(&workspace, session.words))
        }
        WorkspaceCommand::Rm(names) => {
            names.each(session, async |name| client.remove_workspace(name).await).await
        }
        WorkspaceCommand::AddMember(members) => {
            let workspace = &members.workspace;
            let names = Names { names: members.users };
            names.each(session, async |user| client.add_member(workspace, user).await.map(drop)).await
        }
        WorkspaceCommand::RmMember(members) => {
            let workspace = &members.workspace;
            let names = Names { names: members.users };
            names.each(session, async |user| client.remove_member(workspace, user).await.map(drop)).await
        }
    }
}

impl List {
    fn print<T: serde::Serialize>(
        &self,
        items: &[T],
        name: impl Fn(&T) -> &str,
        table: impl FnOnce(&[T]) -> String,
    ) -> anyhow::Result<Status> {
        if self.json {
            output::json(&items)?;
        } else if self.quiet {
            for item in items {
                output::data(name(item))?;
            }
        } else {
            output::data(&table(items))?;
        }
        Ok(Status::DONE)
    }
}

impl Show {
    fn print(&self, value: &impl serde::Serialize, details: &str) -> anyhow::Result<Status> {
        if self.json {
            output::json(value)?;
        } else {
            output::data(details)?;
        }
        Ok(Status::DONE)
    }
}

impl Names {
    /// Does `act` for each; one that fails does not hold up the others.
    async fn each(
        &self,
        session: &Session,
        act: impl AsyncFn(&str) -> Result<(), ClientError>,
    ) -> anyhow::Result<Status> {
        let mut status = Status::DONE;
        for name in &self.names {
            match act(name).await {
                Ok(()) => output::data(name)?,
                Err(error) => status = failure::report(&error.into(), session.words, Status::FAILED),
            }
        }
        Ok(status)
    }
}

fn done(name: &str) -> anyhow::Result<Status> {
    output::data(name)?;
    Ok(Status::DONE)
}

/// The password alone goes to standard output, so that a script can pass it on.
fn show_password(new: &NewPassword, json: bool, words: Words) -> anyhow::Result<Status> {
    if json {
        output::json(new)?;
    } else {
        output::say(&words.new_password(new.user.name.as_str()));
        output::data(&new.password)?;
    }
    Ok(Status::DONE)
}

fn user_table(users: &[User], words: Words) -> String {
    let titles = [Title::Name, Title::Role, Title::Group, Title::State, Title::Age];
    let now = Timestamp::now();
    let row = |user: &User| {
        [
            user.name.to_string(),
            words.role(user.role).to_owned(),
            user.group.to_string(),
            words.user_state(&user.state),
            output::age(user.created_at, now),
        ]
    };
    output::table(words, titles, users.iter().map(row))
}

fn user_details(user: &User, words: Words) -> String {
    output::details(
        words,
        [
            (Title::Name, user.name.to_string()),
            (Title::Role, words.role(user.role).to_owned()),
            (Title::State, words.user_state(&user.state)),
            (Title::Group, user.group.to_string()),
            (Title::Workspaces, joined(&user.workspaces)),
            (Title::Created, format!("{:.0}", user.created_at)),
        ],
    )
}

fn group_table(groups: &[Group], words: Words) -> String {
    let row =
        |group: &Group| [group.name.to_string(), joined(&group.leaders), group.members.len().to_string()];
    output::table(words, [Title::Name, Title::Leaders, Title::Members], groups.iter().map(row))
}

fn group_details(group: &Group, words: Words) -> String {
    output::details(
        words,
        [
            (Title::Name, group.name.to_string()),
            (Title::Leaders, joined(&group.leaders)),
            (Title::Members, joined(&group.members)),
            (Title::Created, format!("{:.0}", group.created_at)),
        ],
    )
}

fn workspace_table(all: &[Workspace], words: Words) -> String {
    let row = |workspace: &Workspace| [workspace.name.to_string(), workspace.members.len().to_string()];
    output::table(words, [Title::Name, Title::Members], all.iter().map(row))
}

fn workspace_details(workspace: &Workspace, words: Words) -> String {
    output::details(
        words,
        [
            (Title::Name, workspace.name.to_string()),
            (Title::Members, joined(&workspace.members)),
            (Title::Created, format!("{:.0}", workspace.created_at)),
        ],
    )
}

fn joined(names: &[impl ToString]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use gateway_api::people::UserState;

    use super::*;
    use crate::words::Language;

    #[test]
    fn people_in_both_languages() {
        let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let until: Timestamp = "2026-01-31T00:00:00Z".parse().unwrap();
        let user = |name: &str, role, state| User {
            name: name.parse().unwrap(),
            role,
            group: "vision".parse().unwrap(),
            workspaces: vec!["paper".parse().unwrap(), "thesis".parse().unwrap()],
            state,
            must_change_password: false,
            created_at: since,
        };
        let users = [
            user("alice", Role::Admin, UserState::Active),
            user("bob", Role::Leader, UserState::Disabled { since }),
            user("carol", Role::User, UserState::Removed { since, until }),
        ];
        let group = Group {
            name: "vision".parse().unwrap(),
            leaders: vec!["bob".parse().unwrap()],
            members: vec!["alice".parse().unwrap(), "bob".parse().unwrap()],
            created_at: since,
        };
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            text.extend(users.iter().map(|user| user_details(user, words)));
            text.push(words.user_removed(&users[2]));
            text.push(words.new_password("alice"));
            text.push(group_table(std::slice::from_ref(&group), words));
            text.push(group_details(&group, words));
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
