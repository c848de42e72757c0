//! Sizes as people write them: `8G`, `512M`, `1.5GiB`. Units are binary, as in docker.

/// Reads a size in bytes. The error is the whole sentence.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| format!("`{text}` is not a size; write it like `512M`, `8G` or `1.5G`"))
}

fn bytes(text: &str) -> Option<u64> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit: u128 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits =
        |text: &str| !text.is_empty() && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts = whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()?;
    u64::try_from(parts * unit / scale).ok()
}

/// Writes a size with at most one digit after the point.
pub(crate) fn display(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in UNITS {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return match (tenths / 10, tenths % 10) {
                (whole, 0) => format!("{whole} {unit}"),
                (whole, tenth) => format!("{whole}.{tenth} {unit}"),
            };
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("1024", 1024),
            ("10b", 10),
            ("1k", 1024),
            ("512M", 512 << 20),
            ("8G", 8 << 30),
            ("8g", 8 << 30),
            ("8GB", 8 << 30),
            ("8GiB", 8 << 30),
            ("1.5G", 3 << 29),
            ("0.25T", 1 << 38),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for wrong in
            ["", "G", ".5G", "1.G", "-1G", "8X", "8 G", "1e9", "8GiBs", "1.2.3G", "99999999999T", "八G"]
        {
            assert!(parse(wrong).unwrap_err().contains("write it like"), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_written_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (64 << 20, "64 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(display(bytes), text);
        }
    }
}
