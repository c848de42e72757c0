//! What `ssh alice@host` shows: the instances, one of which is chosen by its number or name.

use gateway_api::Instance;

use super::{
    connection::Shared,
    inbox::{Inbox, Input},
    relay::Outbox,
    words::Words,
};
use crate::app::InstancePage;

/// The longest answer.
const ANSWER_MAX: usize = 64;

/// Lets the user choose. `None`: they would rather not.
pub(super) async fn choose(
    shared: &Shared,
    words: Words,
    inbox: &Inbox<'_>,
    outbox: &Outbox<'_>,
) -> Option<String> {
    let signed = shared.signed()?;
    let instances = match shared.app.instances(&signed.caller, false, &InstancePage::default()).await {
        Ok(instances) => instances,
        Err(error) => {
            outbox.stdout(format!("berth: {}\r\n", words.refusal(&error))).await.ok()?;
            return None;
        }
    };
    if instances.is_empty() {
        outbox.stdout(words.no_instances()).await.ok()?;
        return None;
    }
    outbox.stdout(table(&instances, words)).await.ok()?;
    loop {
        outbox.stdout(words.which()).await.ok()?;
        let answer = read_line(inbox, outbox).await?;
        match answer.trim() {
            "" => {}
            "q" | "quit" | "exit" => return None,
            answer => match find(&instances, answer) {
                Some(instance) => return Some(instance.slug.to_string()),
                None => outbox.stdout(words.no_such()).await.ok()?,
            },
        }
    }
}

fn table(instances: &[Instance], words: Words) -> String {
    let width = instances.iter().map(|instance| instance.name.as_str().len()).max().unwrap_or(0);
    let line = |(number, instance): (usize, &Instance)| {
        let name = instance.name.as_str();
        format!("{:>4}  {name:<width$}  {}\r\n", number + 1, words.describe(instance))
    };
    let lines: String = instances.iter().enumerate().map(line).collect();
    format!("{}{lines}", words.your_instances())
}

fn find<'a>(instances: &'a [Instance], answer: &str) -> Option<&'a Instance> {
    let named = |instance: &&Instance| instance.name.as_str() == answer || instance.slug.as_str() == answer;
    instances.iter().find(named).or_else(|| {
        let number: usize = answer.parse().ok()?;
        instances.get(number.checked_sub(1)?)
    })
}

/// A line as it is typed at a terminal that shows nothing by itself.
async fn read_line(inbox: &Inbox<'_>, outbox: &Outbox<'_>) -> Option<String> {
    let mut line = String::new();
    loop {
        let keys = match inbox.next().await {
            Input::Data(keys) => keys,
            Input::End => return None,
            Input::Resize(_) | Input::Signal(_) => continue,
        };
        for (at, &key) in keys.iter().enumerate() {
            match key {
                b'\r' | b'\n' => {
                    // What is typed ahead is for the shell.
                    inbox.put_back(keys.slice(at + 1..));
                    outbox.stdout("\r\n").await.ok()?;
                    return Some(line);
                }
                0x03 | 0x04 => {
                    outbox.stdout("\r\n").await.ok()?;
                    return None;
                }
                0x08 | 0x7f if line.pop().is_some() => outbox.stdout("\x08 \x08").await.ok()?,
                b' '..=b'~' if line.len() < ANSWER_MAX => {
                    line.push(char::from(key));
                    outbox.stdout(vec![key]).await.ok()?;
                }
                _ => {}
            }
        }
    }
}
