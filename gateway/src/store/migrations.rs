//! The versions of the store's tables, in order.
//!
//! Listed here and not found by `sqlx::migrate!`: that macro compiles `SQLite` a second time, for the compiler itself.

use std::sync::LazyLock;

use sqlx::{
    SqlSafeStr as _,
    migrate::{Migration, MigrationType, Migrator},
};

/// Embeds a file of `migrations/` for each version.
macro_rules! embedded {
    ($($version:literal, $description:literal, $file:literal;)*) => {
        vec![$(Migration::new(
            $version,
            $description.into(),
            MigrationType::Simple,
            include_str!(concat!("migrations/", $file)).into_sql_str(),
            false,
        )),*]
    };
}

/// Every version, the oldest first.
pub(super) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| Migrator::with_migrations(all()));

fn all() -> Vec<Migration> {
    embedded! {
        1, "ground", "0001_ground.sql";
        2, "people", "0002_people.sql";
        3, "apps", "0003_apps.sql";
        4, "ssh keys", "0004_ssh_keys.sql";
        5, "images", "0005_images.sql";
        6, "jobs", "0006_jobs.sql";
        7, "auto start", "0007_auto_start.sql";
        8, "notices", "0008_notices.sql";
        9, "holdings", "0009_holdings.sql";
        10, "packages", "0010_packages.sql";
        12, "site", "0012_site.sql";
        14, "secrets", "0014_secrets.sql";
        15, "image room", "0015_image_room.sql";
        18, "clusters", "0018_clusters.sql";
        21, "start times", "0021_start_times.sql";
        22, "instance pages", "0022_instance_pages.sql";
        23, "language", "0023_language.sql";
        26, "unknown times", "0026_unknown_times.sql";
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    #[test]
    fn every_file_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/migrations");
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let files: BTreeSet<String> = std::fs::read_dir(folder).unwrap().map(name).collect();
        let listed = all()
            .iter()
            .map(|one| format!("{:04}_{}.sql", one.version, one.description.replace(' ', "_")))
            .collect();
        assert_eq!(files, listed);
    }
}
