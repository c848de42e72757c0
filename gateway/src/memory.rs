//! How threads share the memory that the C library's allocator has taken.

/// At least so many arenas: with one, all threads would wait for each other.
const ARENAS_MIN: usize = 2;

/// As many arenas as there are cores, and so threads that serve. The allocator would make eight times as many, and keep in
/// each what a burst of connections leaves between the few things that stay. Before any thread is made.
#[expect(unsafe_code, reason = "a C function that takes two numbers")]
pub(crate) fn share_between_threads() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let arenas = libc::c_int::try_from(cores.max(ARENAS_MIN)).unwrap_or(libc::c_int::MAX);
    // SAFETY: it changes a setting of the allocator, and takes any number.
    let is_set = unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) } == 1;
    debug_assert!(is_set, "the allocator knows no arenas");
}
