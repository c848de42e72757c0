//! `<% $parameters.x %>` and its like in texts of OpenPAI's second job file.
//!
//! One pass: what is put in is not looked at again, so parameters that name each other cannot run in circles. Names
//! that are not known stay as they are, and so does `$secrets`, which is put in only at the start of a task.

/// `text` with every `<% $name %>` that `lookup` knows replaced. `lookup` gets the name without the dollar.
pub(crate) fn render(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<%") {
        let (before, from) = rest.split_at(start);
        done.push_str(before);
        let Some(end) = from.find("%>") else {
            rest = from;
            break;
        };
        let (whole, after) = from.split_at(end + 2);
        let name = whole[2..end].trim().strip_prefix('$');
        match name.and_then(|name| lookup(name.trim())) {
            Some(value) => done.push_str(&value),
            None => done.push_str(whole),
        }
        rest = after;
    }
    done.push_str(rest);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_put_in_once() {
        let lookup = |name: &str| match name {
            "parameters.lr" => Some("0.1".to_owned()),
            "parameters.loop" => Some("<% $parameters.loop %>".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("--lr <% $parameters.lr %>", "--lr 0.1"),
            ("<%$parameters.lr%><% $parameters.lr %>", "0.10.1"),
            ("<% $parameters.loop %>", "<% $parameters.loop %>"),
            ("<% $parameters.other %> <% $secrets.key %>", "<% $parameters.other %> <% $secrets.key %>"),
            ("<% not closed", "<% not closed"),
            ("100 %> <% %>", "100 %> <% %>"),
        ] {
            assert_eq!(render(text, lookup), expected, "{text}");
        }
    }
}
