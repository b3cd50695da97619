//! Memory for what is made of a large input.
//!
//! A process meets its memory page by page, which in a virtual machine takes two microseconds each. A megabyte that
//! is read, cleaned, encoded and compressed meets hundreds of pages, and that takes longer than the work. A huge page
//! takes as long as a hundred small ones, and what the input leaves of its last one is there already. So large pieces
//! of memory come from it as long as it lasts.
//!
//! It is lent once, for the rest of the process. What is given back is used again if it was the last piece taken.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr::{self, NonNull},
    sync::atomic::{
        AtomicPtr, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// Smaller pieces are the system's business.
const PIECE_BYTES_MIN: usize = 64 << 10;
/// No piece that is asked for has to be aligned to more.
const ALIGN: usize = 64;

#[cfg_attr(target_os = "linux", global_allocator)]
static ROOM: Room = Room {
    start: AtomicPtr::new(ptr::null_mut()),
    len: AtomicUsize::new(0),
    taken: AtomicUsize::new(0),
};

struct Room {
    /// Null until something was lent; `len` is set before.
    start: AtomicPtr<u8>,
    len: AtomicUsize,
    /// How much of it is in use, from its start.
    taken: AtomicUsize,
}

/// Lends memory to whoever asks for large pieces from now on. Only the first time counts.
pub(crate) fn lend(rest: &'static mut [u8]) {
    let skipped = rest.as_ptr().align_offset(ALIGN);
    if let Some(room) = rest.get_mut(skipped..)
        && ROOM.len.compare_exchange(0, room.len(), Relaxed, Relaxed).is_ok()
    {
        ROOM.start.store(room.as_mut_ptr(), Release);
    }
}

impl Room {
    /// A piece that nobody else has, unless there is too little left.
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() < PIECE_BYTES_MIN || layout.align() > ALIGN {
            return None;
        }
        let start = NonNull::new(self.start.load(Acquire))?;
        let len = self.len.load(Relaxed);
        let piece = layout.size().checked_next_multiple_of(ALIGN)?;
        let after = |taken: usize| taken.checked_add(piece).filter(|end| *end <= len);
        let at = self.taken.fetch_update(AcqRel, Acquire, after).ok()?;
        Some(start.map_addr(|start| start.saturating_add(at)))
    }

    /// Where in the room a piece begins; nothing if it is the system's.
    fn place(&self, piece: *mut u8) -> Option<usize> {
        let start = NonNull::new(self.start.load(Acquire))?;
        let at = piece.addr().checked_sub(start.addr().get())?;
        (at < self.len.load(Relaxed)).then_some(at)
    }

    /// Has a piece end elsewhere; false if it is not the last one, or would not fit.
    fn resize_last(&self, at: usize, old: usize, new: usize) -> bool {
        let end = |size: usize| size.checked_next_multiple_of(ALIGN)?.checked_add(at);
        let (Some(old), Some(new)) = (end(old), end(new)) else { return false };
        new <= self.len.load(Relaxed)
            && self.taken.compare_exchange(old, new, AcqRel, Relaxed).is_ok()
    }
}

#[expect(unsafe_code, reason = "whoever hands out memory vouches for it")]
// SAFETY: pieces of the room are those of one slice, do not overlap, since `taken` only grows past them by whole
// pieces and shrinks by the last one, and are aligned as `start` is. All others come from the system and go back to it.
//
// None of it is put into its callers, which are all over the program.
unsafe impl GlobalAlloc for Room {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some(piece) => piece.as_ptr(),
            // SAFETY: the caller has promised what the system asks for.
            None => unsafe { System.alloc(layout) },
        }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some(piece) => {
                // SAFETY: the piece is as long as the layout says.
                unsafe { piece.write_bytes(0, layout.size()) };
                piece.as_ptr()
            }
            // SAFETY: the caller has promised what the system asks for.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match self.place(piece) {
            Some(at) => {
                self.resize_last(at, layout.size(), 0);
            }
            // SAFETY: it is not of the room, so it is the system's.
            None => unsafe { System.dealloc(piece, layout) },
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let place = self.place(piece);
        if let Some(at) = place
            && self.resize_last(at, layout.size(), size)
        {
            return piece;
        }
        // SAFETY: the caller has promised that such a layout can be.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let moved = match (place, self.take(wanted)) {
            (_, Some(moved)) => moved.as_ptr(),
            // SAFETY: it is not of the room, so it is the system's.
            (None, None) => return unsafe { System.realloc(piece, layout, size) },
            // SAFETY: the caller has promised what the system asks for.
            (Some(_), None) => unsafe { System.alloc(wanted) },
        };
        if !moved.is_null() {
            // SAFETY: both are as long as what is copied, and one of them is new.
            unsafe {
                ptr::copy_nonoverlapping(piece, moved, layout.size().min(size));
                self.dealloc(piece, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// The one that all tests allocate from is left alone.
    fn room(bytes: usize) -> Room {
        let lent: &'static mut [u8] = Box::leak(vec![0xAA; bytes].into_boxed_slice());
        let skipped = lent.as_ptr().align_offset(ALIGN);
        Room {
            len: AtomicUsize::new(bytes - skipped),
            start: AtomicPtr::new(lent[skipped..].as_mut_ptr()),
            taken: AtomicUsize::new(0),
        }
    }

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 1).unwrap()
    }

    #[test]
    #[expect(unsafe_code, reason = "an allocator is asked")]
    fn large_pieces_come_from_the_room_and_all_others_from_the_system() {
        let room = room(1 << 20);
        for (bytes, is_here) in [(100, false), (PIECE_BYTES_MIN, true), (2 << 20, false)] {
            let piece = unsafe { room.alloc(layout(bytes)) };
            assert_eq!(room.place(piece).is_some(), is_here, "{bytes}");
            unsafe {
                piece.write_bytes(1, bytes);
                room.dealloc(piece, layout(bytes));
            }
        }
        assert_eq!(room.taken.load(Relaxed), 0, "the last piece is used again");
        let zeroed = unsafe { room.alloc_zeroed(layout(100_000)) };
        let bytes = unsafe { std::slice::from_raw_parts(zeroed, 100_000) };
        assert!(room.place(zeroed).is_some() && bytes.iter().all(|byte| *byte == 0));
        let page = Layout::from_size_align(PIECE_BYTES_MIN, 4096).unwrap();
        assert!(room.take(page).is_none(), "not aligned so far");
    }

    #[test]
    #[expect(unsafe_code, reason = "an allocator is asked")]
    fn a_piece_keeps_its_content_wherever_it_grows() {
        let room = room(1 << 20);
        let mut piece = unsafe { room.alloc(layout(100)) };
        unsafe { piece.write_bytes(7, 100) };
        let mut size = 100;
        let mut places = Vec::new();
        for next in [200_000, 400_000, 3 << 20, 500] {
            piece = unsafe { room.realloc(piece, layout(size), next) };
            size = next;
            places.push(room.place(piece));
            let start = unsafe { std::slice::from_raw_parts(piece, 100) };
            assert!(start.iter().all(|byte| *byte == 7), "{next}");
        }
        assert_eq!(places, [Some(0), Some(0), None, None]);
        unsafe { room.dealloc(piece, layout(size)) };
        assert_eq!(room.taken.load(Relaxed), 0);
    }

    #[test]
    #[expect(unsafe_code, reason = "an allocator is asked")]
    fn threads_never_share_a_piece() {
        let room = room(4 << 20);
        thread::scope(|scope| {
            for mark in 1..=8_u8 {
                let room = &room;
                scope.spawn(move || {
                    for round in 0..500_usize {
                        let bytes = PIECE_BYTES_MIN + round * 97 % 50_000;
                        let more = bytes + 10_000;
                        unsafe {
                            let piece = room.alloc(layout(bytes));
                            piece.write_bytes(mark, bytes);
                            thread::yield_now();
                            let piece = room.realloc(piece, layout(bytes), more);
                            let held = std::slice::from_raw_parts(piece, bytes);
                            assert!(held.iter().all(|byte| *byte == mark));
                            room.dealloc(piece, layout(more));
                        }
                    }
                });
            }
        });
    }
}
