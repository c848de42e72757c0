//! The seccomp profile of every instance: Docker's own, less what reaches past the container.
//!
//! - `io_uring_setup`, `io_uring_enter` and `io_uring_register` do the work of other calls where no filter sees it.
//! - Sockets of `AF_VSOCK` reach the hypervisor and other virtual machines, whatever network a container has.
//! - Sockets of `AF_ALG` opened the way to `CVE-2026-31431`.
//!
//! Engines before version 25 allow the first and those before 23 the second, so none is relied on. The profile has the
//! engine's format since 20.10. One gap is left, as in Docker's: programs for 32-bit x86 may open any socket by
//! `socketcall`, whose arguments no filter can read. Without that call they would have no network at all.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// Calls that are allowed whatever their arguments.
const PLAIN: &str = include_str!("syscalls.txt");
/// Debuggers: on older kernels a traced process could leave the filter.
const TRACING: [&str; 3] = ["process_vm_readv", "process_vm_writev", "ptrace"];
const TRACING_SINCE: &str = "4.8";
/// What `personality` may be asked for: to say what it is, and Linux with or without addresses at random and the like.
const PERSONALITIES: [u32; 5] = [0, 0x8, 0x2_0000, 0x2_0008, u32::MAX];
/// The flags of `clone` that make namespaces.
const NEW_NAMESPACES: u32 = 0x7e02_0000;
/// `AF_ALG` and `AF_VSOCK`.
const REFUSED_FAMILIES: [u64; 2] = [38, 40];
/// The kernel reads so many bits of a socket's family, and a filter sees 64.
const FAMILY_BITS: u32 = 32;
const ENOSYS: u32 = 38;

/// The option of a container that sets the profile.
pub(super) static OPTION: LazyLock<String> = LazyLock::new(|| format!("seccomp={}", profile()));

fn profile() -> Value {
    let plain: Vec<_> =
        PLAIN.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect();
    let on = |arches: &[&str], names: &[&str]| allow(names, &json!({ "includes": { "arches": arches } }));
    let mut rules = vec![
        allow(&plain, &json!({})),
        allow(&TRACING, &json!({ "includes": { "minKernel": TRACING_SINCE } })),
        on(&["amd64", "x32"], &["arch_prctl"]),
        on(&["amd64", "x32", "x86"], &["modify_ldt"]),
        on(
            &["arm", "arm64"],
            &[
                "arm_fadvise64_64",
                "arm_sync_file_range",
                "sync_file_range2",
                "breakpoint",
                "cacheflush",
                "set_tls",
            ],
        ),
        on(&["riscv64"], &["riscv_flush_icache"]),
        allow(&["clone"], &masked(NEW_NAMESPACES.into(), 0)),
        // Its flags lie where no filter can read them: who hears that there is no such call uses `clone`.
        json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS }),
    ];
    rules.extend(PERSONALITIES.map(|persona| {
        let is = json!({ "args": [{ "index": 0, "value": persona, "op": "SCMP_CMP_EQ" }] });
        allow(&["personality"], &is)
    }));
    let mut families = Vec::new();
    allowed_families(0, FAMILY_BITS, &mut families);
    rules.extend(families.into_iter().map(|(mask, first)| allow(&["socket"], &masked(mask, first))));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "archMap": [
            { "architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"] },
            { "architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"] },
            { "architecture": "SCMP_ARCH_RISCV64", "subArchitectures": [] },
        ],
        "syscalls": rules,
    })
}

/// A rule that allows `names` under the condition `when`.
fn allow(names: &[&str], when: &Value) -> Value {
    let mut rule = when.clone();
    rule["names"] = json!(names);
    rule["action"] = json!("SCMP_ACT_ALLOW");
    rule
}

/// The condition that the bits `mask` of the first argument are those of `bits`.
fn masked(mask: u64, bits: u64) -> Value {
    json!({ "args": [{ "index": 0, "value": mask, "valueTwo": bits, "op": "SCMP_CMP_MASKED_EQ" }] })
}

/// Adds the blocks of families that hold none of the refused, each as a mask and the bits below it: from `first` on, so
/// many as fit into `bits`. A filter cannot say "neither this nor that" of an argument, and what it compares without a mask
/// is 64 bits, of which the kernel ignores half.
fn allowed_families(first: u64, bits: u32, found: &mut Vec<(u64, u64)>) {
    if !REFUSED_FAMILIES.iter().any(|family| family >> bits == first >> bits) {
        let all = (1_u64 << FAMILY_BITS) - 1;
        found.push((all >> bits << bits, first));
    } else if let Some(half) = bits.checked_sub(1) {
        allowed_families(first, half, found);
        allowed_families(first | 1 << half, half, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules about one call.
    fn rules(name: &str) -> Vec<Value> {
        let profile = profile();
        let rules = profile["syscalls"].as_array().unwrap().clone();
        rules
            .into_iter()
            .filter(|rule| rule["names"].as_array().unwrap().iter().any(|one| one == name))
            .collect()
    }

    #[test]
    fn all_families_but_two_are_allowed_whatever_the_upper_half() {
        let rules = rules("socket");
        let opens = |family: u64| {
            rules.iter().any(|rule| {
                let test = &rule["args"][0];
                let number = |of: &str| test[of].as_u64().unwrap();
                family & number("value") == number("valueTwo")
            })
        };
        for family in 0..100 {
            let expected = !REFUSED_FAMILIES.contains(&family);
            for dirt in [0, 1 << 32, u64::MAX << 32] {
                assert_eq!(opens(family | dirt), expected, "{family} {dirt:x}");
            }
        }
        assert!(
            opens(u64::from(u32::MAX)) && opens(1 << 31),
            "those that do not exist are the kernel's to refuse"
        );
    }

    #[test]
    fn what_reaches_past_the_container_is_not_allowed() {
        for name in
            ["io_uring_setup", "io_uring_enter", "io_uring_register", "mount", "bpf", "unshare", "setns"]
        {
            assert_eq!(rules(name).len(), 0, "{name}");
        }
        for name in ["read", "socketcall", "ptrace", "clone", "chroot", "execve"] {
            assert_eq!(rules(name).len(), 1, "{name}");
        }
        assert_eq!(rules("clone3")[0]["errnoRet"], ENOSYS);
    }

    #[test]
    fn the_engine_gets_it_in_one_line() {
        let json = OPTION.strip_prefix("seccomp=").unwrap();
        assert!(!json.contains('\n') && json.len() < 16 << 10, "{}", json.len());
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), profile());
    }
}
