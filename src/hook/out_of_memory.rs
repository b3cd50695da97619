//! Ends a hook that gets no more memory: the event is counted as lost, and the user's session goes
//! on. Without this, Rust ends the process with a signal and a message on stderr.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    path::{Path, PathBuf},
    process,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use claude_mem_capture::{Client, Dropped, Response};

use super::respond;

#[global_allocator]
static ALLOCATOR: HookAllocator = HookAllocator;

/// The client to answer, and the data directory with the count. Empty outside of a hook.
static HOOK: OnceLock<(&Client, PathBuf)> = OnceLock::new();

/// From now on, a failed allocation ends the process with exit code 0.
pub(super) fn end_when_out_of_memory(client: &'static Client, data: &Path) {
    let _ = HOOK.set((client, data.into()));
}

fn allocated(memory: *mut u8) -> *mut u8 {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    if memory.is_null()
        && let Some((client, data)) = HOOK.get()
    {
        // A small allocation succeeds where a large one failed. If it does not, nothing is counted.
        if !IS_ENDING.swap(true, Ordering::SeqCst) {
            Dropped::add(data);
            respond(client, &Response::default());
        }
        process::exit(0);
    }
    memory
}

/// The system's allocator.
struct HookAllocator;

#[expect(unsafe_code, reason = "on stable Rust, nothing else can notice a failed allocation")]
// SAFETY: every call is passed to the system's allocator as it is, and so is its result.
unsafe impl GlobalAlloc for HookAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        allocated(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        allocated(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        allocated(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) };
    }
}
