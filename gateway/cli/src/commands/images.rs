//! `berth save`, `berth images` and `berth image`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use gateway_api::{
    Code,
    client::ClientError,
    image::{ChangeImage, Changes, CollectImages, Image, ImageState, SaveInstance, Saved, Share},
    packages::{Package, Packages},
};
use jiff::Timestamp;

use super::{Session, jobs::parse_time, list::Json};
use crate::{
    failure::{Said, Status},
    output::{self, Line},
    size,
    words::{Title, Words},
};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct Save {
    /// The instance
    #[arg(value_name = "NAME")]
    instance: String,
    /// The image's name and tag (`NAME:` for date and time), or its tag alone [default: the instance's name, and date and
    /// time]
    #[arg(value_name = "[IMAGE:]TAG")]
    tag: Option<String>,
    /// What to remember about it
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    message: String,
    /// Leave a path out, instead of caches and /tmp; a part of it may be `*`
    #[arg(long, value_name = "PATH")]
    exclude: Vec<String>,
    /// Leave nothing out
    #[arg(long, conflicts_with = "exclude")]
    everything: bool,
    /// Who may use it
    #[arg(long, value_enum, default_value_t)]
    share: ShareWith,
    /// Stop the instance once the image is whole
    #[arg(long)]
    stop: bool,
    /// Only show what would be in it
    #[arg(long, conflicts_with_all = ["stop", "wait"])]
    dry_run: bool,
    /// Wait until it is done, and fail if it fails
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, requires = "wait")]
    timeout: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ShareWith {
    #[default]
    Me,
    Group,
    Everyone,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Show everything about an image
    Show(Which),
    /// Print a Dockerfile that would make the like of a saved image, and the versions of what is in it
    Dockerfile(Which),
    /// Delete saved images, or give up saving them
    Rm(Images),
    /// Give an image another name; by the one before it nobody finds it any more
    #[command(visible_alias = "rename")]
    Mv(Moving),
    /// Try a save again that failed
    Retry(Retrying),
    /// Give back the room of images that are gone, as an admin
    Gc(Collecting),
    /// Say who may use a saved image
    Share(Sharing),
    /// Propose an image for the platform's list
    Propose(Proposing),
    /// Put an image on the platform's list, as an admin
    Promote(Promoting),
}

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The image: `NAME:TAG`, `USER/NAME:TAG`, its reference or id
    image: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Images {
    /// The images: `NAME:TAG`, `USER/NAME:TAG`, references or ids
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Moving {
    /// The image
    image: String,
    /// Its new name and tag, its name alone (`NAME:`), or its tag alone
    #[arg(value_name = "[NAME:]TAG")]
    to: String,
}

#[derive(Debug, Args)]
pub(crate) struct Retrying {
    /// The image
    image: String,
    /// Wait until it is done, and fail if it fails
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, requires = "wait")]
    timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Collecting {
    /// Only show what would go
    #[arg(long)]
    dry_run: bool,
    /// What was written since so long stays, as a push may still be under way
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = parse_time)]
    older_than: Duration,
    /// Also images that the store does not know, since it was put back from a backup
    #[arg(long)]
    unknown: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sharing {
    /// The image
    image: String,
    /// Who may use it
    #[arg(value_enum)]
    with: ShareWith,
}

#[derive(Debug, Args)]
pub(crate) struct Proposing {
    /// The image
    image: String,
    /// Take the proposal back
    #[arg(long)]
    undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Promoting {
    /// The image
    image: String,
    /// Take it off the list
    #[arg(long)]
    undo: bool,
}

impl From<ShareWith> for Share {
    fn from(with: ShareWith) -> Self {
        match with {
            ShareWith::Me => Self::Me,
            ShareWith::Group => Self::Group,
            ShareWith::Everyone => Self::Everyone,
        }
    }
}

pub(crate) async fn save(arguments: Save, session: &Session) -> anyhow::Result<Status> {
    let exclude = match (arguments.everything, arguments.exclude.is_empty()) {
        (true, _) => Some(Vec::new()),
        (false, true) => None,
        (false, false) => Some(arguments.exclude.clone()),
    };
    if arguments.dry_run {
        return preview(&arguments, exclude.as_deref(), session).await;
    }
    let (name, tag) = arguments.tag.as_deref().map(name_and_tag).unwrap_or_default();
    let (share, stop) = (arguments.share.into(), arguments.stop);
    if share != Share::Me {
        say_secrets(session, &arguments.instance, exclude.as_deref(), &session.words.look_secret()).await;
    }
    let body = SaveInstance { name, tag, message: arguments.message, exclude, share, stop };
    let mut image = match session.client.save_instance(&arguments.instance, &body).await {
        Ok(image) => image,
        Err(error) => return Err(session.explain(&arguments.instance, error).await),
    };
    if arguments.wait {
        image = wait(session, &image, arguments.timeout).await?;
    } else if let Some(saved) = &image.saved {
        output::say(&session.words.being_saved(&full_name(saved)));
    }
    if arguments.json {
        output::json(&image)?;
    } else {
        output::data(&image.reference)?;
    }
    Ok(Status::DONE)
}

/// Says which files look like secrets before others can read them. Where that is not known the act itself goes on.
async fn say_secrets(session: &Session, instance: &str, exclude: Option<&[String]>, title: &str) {
    let Ok(changes) = session.client.changes(instance, exclude).await else { return };
    if !changes.secrets.is_empty() {
        output::say(title);
        for line in indented(&changes.secrets) {
            output::say(&line);
        }
    }
}

/// `NAME:TAG`, `NAME:` or `TAG`.
fn name_and_tag(text: &str) -> (Option<String>, Option<String>) {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match text.rsplit_once(':') {
        Some((name, tag)) => (Some(name.to_owned()), given(tag)),
        None => (None, Some(text.to_owned())),
    }
}

async fn wait(session: &Session, image: &Image, seconds: u64) -> anyhow::Result<Image> {
    let words = session.words;
    let Some(saved) = &image.saved else { return Ok(image.clone()) };
    let mut line = Line::new();
    let show = |image: &Image| {
        if let Some(saved) = &image.saved {
            let (long, short) = (words.image_state_in_full(&saved.state), words.image_state(&saved.state));
            line.show(&format!("{}: {long}", full_name(saved)), &format!("{}: {short}", full_name(saved)));
        }
    };
    let done = session.client.wait_for_image(&saved.id, Duration::from_secs(seconds), show).await;
    let done = done.map_err(|error| gone(words, &full_name(saved), error))?;
    match done.saved.as_ref().map(|saved| &saved.state) {
        Some(ImageState::Failed { failure, message }) => {
            let what = words.not_saved(&full_name(saved), &words.save_failure(*failure, message));
            Err(Said { what, hint: Some(words.hint_save_again()) }.into())
        }
        Some(ImageState::Saving { .. } | ImageState::Ready | ImageState::Deleting) | None => Ok(done),
    }
}

/// Somebody has deleted it meanwhile, which gives the save up.
fn gone(words: Words, name: &str, error: ClientError) -> anyhow::Error {
    if error.code() == Some(Code::NotFound) {
        return Said { what: words.save_given_up(name), hint: None }.into();
    }
    error.into()
}

async fn preview(arguments: &Save, exclude: Option<&[String]>, session: &Session) -> anyhow::Result<Status> {
    let changes = match session.client.changes(&arguments.instance, exclude).await {
        Ok(changes) => changes,
        Err(error) => return Err(session.explain(&arguments.instance, error).await),
    };
    if arguments.json {
        output::json(&changes)?;
    } else {
        output::data(&changes_text(&changes, session.words))?;
    }
    Ok(Status::DONE)
}

fn changes_text(changes: &Changes, words: Words) -> String {
    let sized = |path: &gateway_api::image::ChangedPath| {
        format!("{:>10}  {}", size::display(path.bytes), output::printable(&path.path))
    };
    let mut lines = vec![words.changes(changes)];
    lines.extend(changes.largest.iter().map(sized));
    let mut section = |title: String, items: Vec<String>| {
        if !items.is_empty() {
            lines.push(title);
            lines.extend(items);
        }
    };
    section(words.installed(), installed(&changes.packages));
    section(words.removed(), indented(&changes.packages.removed));
    section(words.left_out(), changes.excluded.iter().map(sized).collect());
    section(words.not_in_images(), indented(&changes.mounts));
    section(words.look_secret(), indented(&changes.secrets));
    lines.join("\n")
}

fn indented(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| format!("  {}", output::printable(line))).collect()
}

fn installed(packages: &Packages) -> Vec<String> {
    let kinds = [("apt", &packages.apt), ("pip", &packages.pip), ("conda", &packages.conda)];
    let told = |(who, packages): (&str, &Vec<Package>)| -> Vec<String> {
        packages.iter().map(|one| format!("  {who:<5}  {} {}", one.name, one.version)).collect()
    };
    kinds.into_iter().flat_map(told).collect()
}

pub(crate) async fn images(arguments: &Json, session: &Session) -> anyhow::Result<Status> {
    let images = session.client.images().await?;
    if arguments.json {
        output::json(&images)?;
    } else {
        output::data(&table(&images, session.words, Timestamp::now()))?;
    }
    Ok(Status::DONE)
}

pub(crate) async fn image(command: ImageCommand, session: &Session) -> anyhow::Result<Status> {
    let (client, words) = (&session.client, session.words);
    let change = |image: String, change: ChangeImage| async move {
        let image = client.change_image(&image, &change).await?;
        output::data(&image.reference)?;
        Ok(Status::DONE)
    };
    match command {
        ImageCommand::Show(Which { image, json }) => {
            let image = client.image(&image).await?;
            if json {
                output::json(&image)?;
            } else {
                output::data(&details(&image, words))?;
            }
            Ok(Status::DONE)
        }
        ImageCommand::Dockerfile(Which { image, json }) => {
            let recipe = client.dockerfile(&image).await?;
            if json {
                output::json(&recipe)?;
            } else {
                let lock: Vec<_> = recipe.lock.iter().map(|line| format!("# {line}")).collect();
                output::data(format!("{}\n{}", recipe.dockerfile, lock.join("\n")).trim_end())?;
            }
            Ok(Status::DONE)
        }
        ImageCommand::Rm(Images { images }) => {
            let mut status = Status::DONE;
            for image in images {
                match client.delete_image(&image).await {
                    Ok(image) => output::data(&image.reference)?,
                    Err(error) => {
                        status = crate::failure::report(&error.into(), words, Status::FAILED);
                    }
                }
            }
            Ok(status)
        }
        ImageCommand::Mv(Moving { image, to }) => {
            let (name, tag) = name_and_tag(&to);
            change(image, ChangeImage { name, tag, ..ChangeImage::default() }).await
        }
        ImageCommand::Retry(Retrying { image, wait: waits, timeout }) => {
            let mut image = client.retry_image(&image).await?;
            if waits {
                image = wait(session, &image, timeout).await?;
            }
            output::data(&image.reference)?;
            Ok(Status::DONE)
        }
        ImageCommand::Gc(Collecting { dry_run, older_than, unknown, json }) => {
            let older_than_seconds = Some(older_than.as_secs());
            let wanted = CollectImages { dry_run, older_than_seconds, unknown };
            let collected = client.collect_images(&wanted).await?;
            if json {
                output::json(&collected)?;
            } else {
                output::data(&words.collected(&collected, dry_run))?;
            }
            Ok(Status::DONE)
        }
        ImageCommand::Share(Sharing { image, with }) => {
            if !matches!(with, ShareWith::Me)
                && let Some(instance) = client.image(&image).await?.saved.and_then(|saved| saved.instance)
            {
                let title = words.may_hold_secrets(instance.as_str());
                say_secrets(session, instance.as_str(), None, &title).await;
            }
            change(image, ChangeImage { share: Some(with.into()), ..ChangeImage::default() }).await
        }
        ImageCommand::Propose(Proposing { image, undo }) => {
            change(image, ChangeImage { proposed: Some(!undo), ..ChangeImage::default() }).await
        }
        ImageCommand::Promote(Promoting { image, undo }) => {
            change(image, ChangeImage { platform: Some(!undo), ..ChangeImage::default() }).await
        }
    }
}

/// The platform's and the saved ones.
pub(crate) fn table(images: &[Image], words: Words, now: Timestamp) -> String {
    let row = |image: &Image| {
        let saved = image.saved.as_ref();
        [
            image.reference.clone(),
            size::display(image.size_bytes),
            output::age(image.created_at, now),
            saved.map_or_else(|| words.platform().to_owned(), |saved| saved.user.to_string()),
            match saved {
                Some(saved) if saved.platform => words.platform().to_owned(),
                Some(saved) => words.share(saved.share).to_owned(),
                None => words.share(Share::Everyone).to_owned(),
            },
            match saved {
                None => words.yes_default(image.default).to_owned(),
                Some(saved) => words.image_state(&saved.state).to_owned(),
            },
            saved
                .map(|saved| saved.message.lines().next().unwrap_or_default().to_owned())
                .unwrap_or_default(),
        ]
    };
    let titles =
        [Title::Image, Title::Size, Title::Age, Title::User, Title::Share, Title::State, Title::Message];
    output::table(words, titles, images.iter().map(row))
}

fn details(image: &Image, words: Words) -> String {
    let Some(saved) = &image.saved else { return platform_details(image, words) };
    let mut rows = vec![
        (Title::Image, image.reference.clone()),
        (Title::State, words.image_state_in_full(&saved.state)),
        (Title::Size, words.size_of_image(image.size_bytes, saved.added_bytes, saved.layers)),
        (Title::User, saved.user.to_string()),
        (Title::Share, words.share(saved.share).to_owned()),
        (Title::PlatformList, words.platform_list(saved.platform, saved.proposed).to_owned()),
        (Title::Parent, saved.parent.clone()),
        (Title::Created, format!("{:.0}", image.created_at)),
    ];
    if let Some(instance) = &saved.instance {
        rows.push((Title::Instance, instance.to_string()));
    }
    if !saved.message.is_empty() {
        rows.push((Title::Message, saved.message.clone()));
    }
    if let Some(digest) = &saved.digest {
        rows.push((Title::Digest, digest.clone()));
    }
    if !saved.used_by.is_empty() {
        rows.push((Title::UsedBy, saved.used_by.join("\n")));
    }
    rows.push((Title::Id, saved.id.to_string()));
    output::details(words, rows)
}

/// Of an image that nobody has saved.
fn platform_details(image: &Image, words: Words) -> String {
    let mut rows = vec![
        (Title::Image, image.reference.clone()),
        (Title::Size, size::display(image.size_bytes)),
        (Title::User, words.platform().to_owned()),
        (Title::Share, words.share(Share::Everyone).to_owned()),
        (Title::Created, format!("{:.0}", image.created_at)),
    ];
    if image.default {
        rows.push((Title::State, words.yes_default(true).to_owned()));
    }
    output::details(words, rows)
}

fn full_name(saved: &Saved) -> String {
    format!("{}:{}", saved.name, saved.tag)
}

#[cfg(test)]
pub(crate) mod tests {
    use gateway_api::image::{CollectedImages, SaveFailure};

    use super::*;
    use crate::words::Language;

    pub(crate) fn saved() -> Image {
        let json = serde_json::json!({
            "reference": "localhost:8080/alice/train:1", "size_bytes": 300_000_000, "default": false,
            "created_at": "2026-01-30T00:00:00Z",
            "saved": {
                "id": "img_0190f2c3a1b27cc09d3e5f60718293a4", "user": "alice", "name": "train", "tag": "1",
                "message": "with apex", "instance": "train", "parent": "localhost/berth/base:12",
                "digest": "sha256:00", "added_bytes": 2_000_000, "layers": 3, "share": "group",
                "platform": false, "proposed": false, "state": {"state": "ready"}, "used_by": ["bob/eval"],
            },
        });
        serde_json::from_value(json).unwrap()
    }

    const FAILURES: [SaveFailure; 9] = [
        SaveFailure::NoRegistry,
        SaveFailure::InstanceGone,
        SaveFailure::RegistryUnreachable,
        SaveFailure::RegistryRefused,
        SaveFailure::RegistryFull,
        SaveFailure::DiskFull,
        SaveFailure::EngineUnreachable,
        SaveFailure::Cancelled,
        SaveFailure::Other,
    ];

    #[test]
    fn an_image_and_its_changes_in_both_languages() {
        let changes = Changes {
            files: 12,
            bytes: 3 << 20,
            deleted: 1,
            largest: vec![gateway_api::image::ChangedPath { path: "/opt/x".to_owned(), bytes: 2 << 20 }],
            mounts: vec!["/userhome".to_owned()],
            secrets: vec!["/root/.ssh/id_ed25519".to_owned()],
            packages: Packages {
                pip: vec![Package { name: "numpy".to_owned(), version: "2.1".to_owned(), at: None }],
                removed: vec!["nano".to_owned()],
                ..Packages::default()
            },
            ..Changes::default()
        };
        let saving = ImageState::Saving {
            step: gateway_api::image::SaveStep::Packing,
            done_bytes: 1 << 20,
            total_bytes: Some(4 << 20),
        };
        let collected = CollectedImages {
            blobs: 3,
            blob_bytes: 5 << 20,
            images: vec!["127.0.0.1:5000/alice/old:1".to_owned()],
            image_bytes: 7 << 20,
            own_registry: true,
        };
        let mut text = Vec::new();
        for words in [Language::English, Language::Chinese].map(Words::new) {
            text.push(details(&saved(), words));
            text.push(changes_text(&changes, words));
            text.push(words.image_state_in_full(&saving));
            // In English the cluster's own sentence stands.
            for failure in FAILURES.into_iter().skip(if words.is_english() { 8 } else { 0 }) {
                let message = "tag not allowed".to_owned();
                text.push(words.image_state_in_full(&ImageState::Failed { failure, message }));
            }
            let listed = [(true, true), (false, true), (false, false)];
            text.extend(
                listed.map(|(platform, proposed)| words.platform_list(platform, proposed).to_owned()),
            );
            text.push(words.may_hold_secrets("train"));
            text.push(words.collected(&collected, true));
            text.push(words.collected(&CollectedImages::default(), false));
        }
        insta::assert_snapshot!(text.join("\n\n"));
    }
}
