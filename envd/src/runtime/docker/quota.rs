//! Whether the engine's disk can keep a limit by itself: overlay2 on XFS that was mounted with project quotas.

use std::fs;

use bollard::models::SystemInfo;
use gateway_api::node::DiskLimit;

pub(super) fn limit(info: &SystemInfo) -> DiskLimit {
    let status = info.driver_status.iter().flatten();
    let is_on_xfs = status.into_iter().any(|line| line.join(" ") == "Backing Filesystem xfs");
    let root = info.docker_root_dir.as_deref().unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if info.driver.as_deref() == Some("overlay2") && is_on_xfs && has_project_quota(&mounts, root) {
        DiskLimit::Hard
    } else {
        DiskLimit::Polled
    }
}

/// Whether the file system that `path` is on was mounted with project quotas.
fn has_project_quota(mounts: &str, path: &str) -> bool {
    let of_line = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.to_owned();
        let is_above = point == "/" || path == point || path.starts_with(&format!("{point}/"));
        let options = after.split(' ').nth(2).unwrap_or_default();
        is_above
            .then(|| (point.len(), options.split(',').any(|option| matches!(option, "prjquota" | "pquota"))))
    };
    // The innermost mount counts, and of several at one point the last.
    mounts
        .lines()
        .filter_map(of_line)
        .max_by_key(|(length, _)| *length)
        .is_some_and(|(_, has_quota)| has_quota)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_decides() {
        let mounts = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                      30 22 8:1 / /var/lib/docker rw,noatime - xfs /dev/sdb1 rw,attr2,prjquota\n\
                      31 22 8:2 / /var/lib/docker2 rw - xfs /dev/sdb2 rw,noquota\n";
        assert!(has_project_quota(mounts, "/var/lib/docker"));
        assert!(has_project_quota(mounts, "/var/lib/docker/overlay2"));
        assert!(!has_project_quota(mounts, "/var/lib/docker2"));
        assert!(!has_project_quota(mounts, "/srv"));
    }
}
