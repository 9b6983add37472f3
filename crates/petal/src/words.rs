//! The bits of a filter in memory: owned, in a mapped file, or shared.
//!
//! Owns allocation, alignment and mapping. It knows nothing of blocks or
//! keys: filters are written once over [`Words`], wherever the words live.
//!
//! Owned words start at a cache line. Large ones are anonymous mappings: the
//! system hands out zeroed pages as they are touched, and pages of 2 MiB
//! where it can. A program that counts its memory by its allocator gets them
//! from there instead. Words in files are little-endian; a big-endian machine
//! copies them.

use std::fmt;
use std::fs::File;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic::AtomicU64;
use memmap2::{Mmap, MmapMut, MmapOptions};
#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic::AtomicU64;

use crate::error::{Error, Result};

/// From this size on, owned words are an anonymous mapping and the system is
/// asked for pages of 2 MiB. Below, memory that the process had before is
/// cleared sooner than the system hands out pages of 4 KiB one by one.
const MAP_FROM_BYTES: u64 = 2 << 20;

/// Whether large owned words come from the global allocator as well.
static FROM_ALLOCATOR: AtomicBool = AtomicBool::new(false);

/// [`crate::memory::use_global_allocator`]
pub(crate) fn use_global_allocator() {
    FROM_ALLOCATOR.store(true, Ordering::Relaxed);
}

/// One cache line, so that a heap vector of them is aligned to it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

// SAFETY: a line is eight integers, for which all zero bits are a value.
#[expect(unsafe_code, reason = "zeroed memory from the allocator")]
unsafe impl bytemuck::Zeroable for Line {}

/// A run of 64-bit words and whatever keeps them alive.
pub(crate) struct Words {
    /// The first word. Valid for `len` words while `owner` lives, and never
    /// reached by anyone else for writing.
    first: NonNull<u64>,
    len: usize,
    /// Whether the owner's memory may be changed. Beside it, since asking the
    /// owner takes seven instructions of every insertion.
    writable: bool,
    owner: Owner,
}

#[expect(dead_code, reason = "the fields keep the memory behind `first` alive")]
enum Owner {
    Heap(Vec<Line>),
    Anonymous(MmapMut),
    Mapped(Arc<Mmap>),
    MappedForWriting(MmapMut),
    Shared(Arc<[u8]>),
}

// SAFETY: the words are plain integers reached only through `&self` and
// `&mut self`, and every owner may be moved to and used from another thread.
#[expect(unsafe_code, reason = "a raw pointer into memory that the value owns")]
unsafe impl Send for Words {}
// SAFETY: `&Words` gives reads only, and nothing in this process changes the
// words behind a shared reference, but for a file that somebody maps for
// reading while it is written in place: `open_mapped` and `measure` tell their
// callers not to.
#[expect(unsafe_code, reason = "a raw pointer into memory that the value owns")]
unsafe impl Sync for Words {}

impl Words {
    /// Words in the memory of `owner`, which must be as [`Words`] says.
    fn of(first: NonNull<u64>, len: usize, owner: Owner) -> Self {
        let writable = match owner {
            Owner::Heap(_) | Owner::Anonymous(_) | Owner::MappedForWriting(_) => true,
            Owner::Mapped(_) | Owner::Shared(_) => false,
        };
        Self {
            first,
            len,
            writable,
            owner,
        }
    }

    /// `count` words of zero.
    ///
    /// # Errors
    /// [`Error::TooLarge`] before anything is allocated if this process may
    /// not use so many bytes, or if the system refuses them.
    pub(crate) fn zeroed(count: u64) -> Result<Self> {
        let bytes = count.saturating_mul(8);
        crate::memory::check(bytes)?;
        let refused = || Error::TooLarge {
            needed: bytes,
            available: None,
        };
        let len = usize::try_from(count).map_err(|_| refused())?;
        if bytes < MAP_FROM_BYTES || FROM_ALLOCATOR.load(Ordering::Relaxed) {
            let mut heap: Vec<Line> =
                bytemuck::allocation::try_zeroed_vec(len.div_ceil(8)).map_err(|()| refused())?;
            let first = NonNull::from(heap.as_mut_slice()).cast();
            return Ok(Self::of(first, len, Owner::Heap(heap)));
        }
        let byte_len = usize::try_from(bytes).map_err(|_| refused())?;
        let mut map = MmapMut::map_anon(byte_len).map_err(|_| refused())?;
        // Advice only: a system without huge pages is merely slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let first = NonNull::from(map.as_mut()).cast();
        Ok(Self::of(first, len, Owner::Anonymous(map)))
    }

    /// Keeps the first `len` words.
    pub(crate) fn shorten(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// A copy in memory of its own.
    ///
    /// # Errors
    /// As [`Self::zeroed`].
    pub(crate) fn to_owned_words(&self) -> Result<Self> {
        let mut owned = Self::zeroed(self.len as u64)?;
        owned.get_mut()?.copy_from_slice(self.get());
        Ok(owned)
    }

    /// Turns words that were just read from a file into this machine's order.
    #[cfg_attr(
        target_endian = "little",
        expect(clippy::unused_self, reason = "a no-op here")
    )]
    pub(crate) fn make_native(&mut self) {
        #[cfg(target_endian = "big")]
        for word in self.get_mut().into_iter().flatten() {
            *word = u64::from_le(*word);
        }
    }

    /// `count` words at byte `offset` of a file mapped for reading. The range
    /// must lie inside of the map, at a multiple of 8.
    #[cfg(target_endian = "little")]
    pub(crate) fn in_map(map: Arc<Mmap>, offset: usize, count: usize) -> Result<Self> {
        let first = first_word(&map, offset, count)?;
        Ok(Self::of(first, count, Owner::Mapped(map)))
    }

    /// The same in bytes that somebody else keeps alive as well.
    #[cfg(target_endian = "little")]
    pub(crate) fn in_shared(bytes: Arc<[u8]>, offset: usize, count: usize) -> Result<Self> {
        let first = first_word(&bytes, offset, count)?;
        Ok(Self::of(first, count, Owner::Shared(bytes)))
    }

    /// The same in a file mapped for writing: changes reach the file.
    #[cfg(target_endian = "little")]
    pub(crate) fn in_map_for_writing(
        mut map: MmapMut,
        offset: usize,
        count: usize,
    ) -> Result<Self> {
        first_word(&map, offset, count)?;
        // Taken from the mutable slice, so that writing through it is allowed.
        let first = NonNull::from(&mut map[offset..offset + count * 8]).cast();
        Ok(Self::of(first, count, Owner::MappedForWriting(map)))
    }

    /// The words.
    #[inline(always)]
    pub(crate) fn get(&self) -> &[u64] {
        // SAFETY: `first` is aligned and valid for `len` initialised words as
        // long as `owner`, a field of `self`, lives.
        #[expect(unsafe_code, reason = "one pointer for every kind of owner")]
        unsafe {
            std::slice::from_raw_parts(self.first.as_ptr(), self.len)
        }
    }

    /// The words, to be changed.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] if they are in a file mapped for reading or shared.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self) -> Result<&mut [u64]> {
        if !self.writable {
            return Err(Error::ReadOnly);
        }
        // SAFETY: as in `get`; the owner is a writable one, its memory is
        // reached only through `self`, and `self` is borrowed mutably.
        #[expect(unsafe_code, reason = "one pointer for every kind of owner")]
        Ok(unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) })
    }

    /// The words as bytes in this machine's order.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.get())
    }

    /// The words as bytes in this machine's order, to be changed.
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        Ok(bytemuck::cast_slice_mut(self.get_mut()?))
    }

    /// Waits until changes to words mapped for writing are in the file.
    pub(crate) fn flush(&self) -> std::io::Result<()> {
        match &self.owner {
            Owner::MappedForWriting(map) => map.flush(),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = match self.owner {
            Owner::Heap(_) => "heap",
            Owner::Anonymous(_) => "anonymous map",
            Owner::Mapped(_) => "file map",
            Owner::MappedForWriting(_) => "writable file map",
            Owner::Shared(_) => "shared bytes",
        };
        write!(f, "Words({} in {owner})", self.len)
    }
}

/// Words that many threads read and change at once.
#[cfg(not(all(loom, test)))]
#[derive(Debug)]
pub(crate) struct AtomicWords {
    /// Owned memory. While `self` exists, nothing but [`Self::get`] reaches it.
    words: Words,
}

#[cfg(not(all(loom, test)))]
impl AtomicWords {
    /// Takes owned words as they are. Words in a file are copied, so that the
    /// file stays as it is.
    ///
    /// # Errors
    /// [`Error::TooLarge`] as [`Words::zeroed`], if they have to be copied.
    pub(crate) fn new(words: Words) -> Result<Self> {
        if matches!(words.owner, Owner::Heap(_) | Owner::Anonymous(_)) {
            return Ok(Self { words });
        }
        Ok(Self {
            words: words.to_owned_words()?,
        })
    }

    /// The words.
    #[inline(always)]
    pub(crate) fn get(&self) -> &[AtomicU64] {
        let Words { first, len, .. } = self.words;
        // SAFETY: `first` is valid for reads and writes of `len` words while
        // `owner` lives, and starts at a line or page, so it is aligned for
        // `AtomicU64`, which has the size and the values of a `u64`. As
        // nothing else reaches the memory while `self` exists, no access that
        // is not atomic meets these.
        #[expect(unsafe_code, reason = "plain memory, used atomically for a while")]
        unsafe {
            std::slice::from_raw_parts(first.as_ptr().cast::<AtomicU64>(), len)
        }
    }

    /// The words, for one owner again.
    pub(crate) fn into_words(self) -> Words {
        self.words
    }
}

/// For models of concurrent runs, whose atomics are more than a word: copies.
#[cfg(all(loom, test))]
#[derive(Debug)]
pub(crate) struct AtomicWords {
    words: Vec<AtomicU64>,
}

#[cfg(all(loom, test))]
impl AtomicWords {
    pub(crate) fn new(words: Words) -> Result<Self> {
        Ok(Self {
            words: words.get().iter().map(|&w| AtomicU64::new(w)).collect(),
        })
    }

    pub(crate) fn get(&self) -> &[AtomicU64] {
        &self.words
    }

    pub(crate) fn into_words(mut self) -> Words {
        let mut words = Words::zeroed(self.words.len() as u64).expect("few words");
        let plain = words.get_mut().expect("owned words");
        for (plain, atomic) in plain.iter_mut().zip(&mut self.words) {
            *plain = atomic.with_mut(|word| *word);
        }
        words
    }
}

/// Makes `words` the bitwise union of both.
pub(crate) fn or_words(words: &mut [u64], other: &[u64]) {
    for (word, theirs) in words.iter_mut().zip(other) {
        *word |= theirs;
    }
}

/// Makes `words` the bitwise intersection of both.
pub(crate) fn and_words(words: &mut [u64], other: &[u64]) {
    for (word, theirs) in words.iter_mut().zip(other) {
        *word &= theirs;
    }
}

/// Set bits in all words.
pub(crate) fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Checks that a run of words lies inside of `bytes` and is aligned.
fn first_word(bytes: &[u8], offset: usize, count: usize) -> Result<NonNull<u64>> {
    let misplaced = || Error::mismatch("place of the words", "aligned words in the file", offset);
    let range = count
        .checked_mul(8)
        .and_then(|len| offset.checked_add(len))
        .and_then(|end| bytes.get(offset..end))
        .ok_or_else(misplaced)?;
    let words: &[u64] = bytemuck::try_cast_slice(range).map_err(|_| misplaced())?;
    Ok(NonNull::from(words).cast())
}

/// Maps a whole file for reading.
pub(crate) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the words are plain integers, so any bytes are valid values.
    // That nobody shortens or rewrites the file meanwhile is asked of the
    // caller in the documentation of `open_mapped`; petal itself replaces
    // files by renaming, but for its writer in place.
    #[expect(unsafe_code, reason = "mapping a file")]
    unsafe {
        MmapOptions::new().map(file)
    }
}

/// Maps a whole file for reading and writing. The caller holds its lock.
pub(crate) fn map_for_writing(file: &File) -> std::io::Result<MmapMut> {
    // SAFETY: as in `map`; the lock keeps other petal writers away.
    #[expect(unsafe_code, reason = "mapping a file")]
    unsafe {
        MmapOptions::new().map_mut(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_words_are_zero_and_start_at_a_line() {
        for count in [0, 1, 8, 9, 8191, 8192, 1 << 18] {
            let mut words = Words::zeroed(count).unwrap();
            assert_eq!(words.get().len() as u64, count);
            assert_eq!(words.get().as_ptr().addr() % 64, 0);
            assert!(words.get().iter().all(|&word| word == 0));
            words.get_mut().unwrap().fill(7);
            assert!(words.get().iter().all(|&word| word == 7));
        }
    }

    #[test]
    fn large_words_come_from_the_allocator_if_that_is_asked_for() {
        let count = 1 << 18;
        assert!(matches!(
            Words::zeroed(count).unwrap().owner,
            Owner::Anonymous(_)
        ));
        use_global_allocator();
        let words = Words::zeroed(count).unwrap();
        FROM_ALLOCATOR.store(false, Ordering::Relaxed);
        assert!(matches!(words.owner, Owner::Heap(_)));
        assert_eq!(words.get().as_ptr().addr() % 64, 0);
        assert!(words.get().iter().all(|&word| word == 0));
    }

    #[test]
    fn absurd_sizes_are_errors_that_name_the_bytes() {
        for count in [1 << 50, 1 << 61, u64::MAX] {
            let error = Words::zeroed(count).unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn shared_words_are_checked_and_read_only() {
        let bytes: Arc<[u8]> = bytemuck::cast_slice(&[1u64, 2, 3]).into();
        let offset = bytes.as_ptr().align_offset(8);
        let count = (bytes.len() - offset) / 8;
        let mut words = Words::in_shared(bytes.clone(), offset, count).unwrap();
        assert_eq!(words.get().len(), count);
        assert!(matches!(words.get_mut(), Err(Error::ReadOnly)));
        for (offset, count) in [
            (offset, 4),
            (offset + 1, 1),
            (usize::MAX, 1),
            (8, usize::MAX),
        ] {
            assert!(Words::in_shared(bytes.clone(), offset, count).is_err());
        }
    }
}
