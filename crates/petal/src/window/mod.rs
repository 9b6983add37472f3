//! "Seen within the last W keys, or T seconds": a filter that forgets.
//!
//! Owns [`Window`] and its typed form [`WindowFilter`]: geometry, words and
//! generations put together. Which lane is which generation is in `ring`, the
//! bits in `slices`, the layout in [`crate::geometry::window`], sizes in
//! [`crate::sizing`].
//!
//! A generation is a Bloom filter of its own for one part in g of the window.
//! All of them use the same positions, and a position holds one bit of each:
//! a question ANDs its positions and has the answers of all generations at
//! once, and so the age. A new generation takes the lane of the oldest, whose
//! bits have been cleared in passing.

mod ring;
mod slices;
#[cfg(test)]
mod tests;

pub(crate) use ring::RingState;
pub use ring::{Generation, Overload, WindowSpan};

use crate::error::{Error, FormatError, Result};
use crate::geometry::window::{WindowGeometry, lines_of};
use crate::hash::{Bytes, Digest, Digests, Key, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{self, DEFAULT_GENERATIONS, Promise};
use crate::traits::{Bits, BitsMut, Contains, Insert, clear_mask};
use crate::typed::Typed;
use crate::words::Words;
use ring::Ring;
use slices::Touched;

/// A filter that remembers the last keys, or the keys of a stretch of time.
///
/// * A key that was inserted within the window is always found.
/// * At any moment a key that was not inserted for longer than the window and
///   one generation is found with an expected probability of at most `p`. A
///   generation is one part in 14, rounded up, so that the smallest windows of
///   keys are exact.
/// * No call stalls: an insertion clears a few words of what has expired, and
///   never a whole generation.
///
/// A window of **keys** remembers the keys of the last `n` insertions, or more: an
/// insertion of a key that the generation being filled (one part in 14 of the
/// window, unless asked otherwise) already has does not count. One that comes back
/// counts once in each generation, so that fewer than `n` distinct keys may be
/// remembered; never more than `n` and a generation. An insertion makes a key new
/// again: its window starts anew. Whoever wants a key's first insertion alone to
/// count asks first, and inserts what is absent: then it is the last `n` distinct keys,
/// by their first insertion. Whoever wants all insertions to count makes a window of
/// time of which the clock counts them: then it is the last `n`, and at most a generation
/// more.
///
/// A window of **time** remembers the keys of the last `ticks`, in whatever
/// unit the caller counts. The library reads no clock: [`Self::advance`] tells
/// the time, and asking and inserting, one at a time, in batches or through
/// [`crate::Insert`], happen at the time told last; [`Self::insert_at`] and
/// [`Self::contains_at`] take it along. Now is the latest time told. A key
/// with an earlier one goes to the generation of its time, so that it is forgotten
/// when that says; one from before the window is not remembered
/// ([`Window::is_past`]). A single time that is far ahead puts whatever is not before the
/// window: who cannot trust times checks them. More
/// than `n` keys in the window are an overload: with
/// [`Overload::Shorten`] the oldest generation goes before its time
/// ([`Window::shortened`] and [`Window::complete_since`] tell), with
/// [`Overload::Refuse`] new keys are refused. Either is decided for each
/// generation: it takes one part in `g` of the keys, so let `n` be that of the
/// busiest `1/g` of the window, times `g`.
///
/// Where keys come at far less than the planned rate, clearing, which rides on
/// insertions, may not be over when the clock asks for the next generation. The
/// one that is being filled then goes on, and its keys are remembered
/// for longer than the window and one generation. It goes on for as many insertions as a pass
/// over the words takes at 4096 words each (69 in a window of a million keys at 1 %), or at the share of an
/// insertion where that is more. A key with an earlier time may then
/// share a generation with later ones, and stays as long as they do: never longer than a key
/// that comes at the same moment with the present time. [`Self::tend`], called while
/// idle, prevents all that.
///
/// ```
/// use petal::{Overload, WindowFilter};
/// let mut seen = WindowFilter::new(1000, 0.01)?; // the last thousand keys
/// assert!(seen.insert("a")?);
/// assert!(!seen.insert("a")?);
/// assert_eq!(seen.age("a"), Some(0));
///
/// // Sixty seconds of at most ten thousand keys.
/// let mut seen = WindowFilter::timed(60, 10_000, 0.01, Overload::Shorten)?;
/// assert!(seen.insert_at("a", 1_000)?);
/// assert!(!seen.insert_at("a", 1_059)?);
/// assert!(seen.contains_at("a", 1_119));
/// assert!(!seen.contains_at("a", 1_120));
/// # Ok::<(), petal::Error>(())
/// ```
pub type WindowFilter<K = Bytes> = Typed<K, Window>;

impl WindowFilter<Bytes> {
    /// A window over the last `keys` byte keys with an expected error of at
    /// most `error`, under the default hasher.
    ///
    /// # Errors
    /// As for [`crate::BloomFilter::new`].
    pub fn new(keys: u64, error: f64) -> Result<Self> {
        let promise = Promise { items: keys, error };
        Self::with_hasher(WindowSpan::Keys, promise, KeyHasher::default())
    }

    /// A window over the last `ticks` of time, in which at most `keys` byte
    /// keys are expected.
    ///
    /// # Errors
    /// As for [`Self::new`], or if `ticks` is 0.
    pub fn timed(ticks: u64, keys: u64, error: f64, overload: Overload) -> Result<Self> {
        let promise = Promise { items: keys, error };
        let span = WindowSpan::Time { ticks, overload };
        Self::with_hasher(span, promise, KeyHasher::default())
    }
}

impl<K: KeyKind> WindowFilter<K> {
    /// A window for either kind of key under a hasher of the caller's choice.
    ///
    /// # Errors
    /// As for [`WindowFilter::timed`].
    pub fn with_hasher(span: WindowSpan, promise: Promise, hasher: KeyHasher) -> Result<Self> {
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Window::sized(identity, span, promise, DEFAULT_GENERATIONS)?)
    }

    /// [`Window::advance`]
    pub fn advance(&mut self, now: u64) {
        self.inner_mut().advance(now);
    }

    /// [`Window::tend`]
    ///
    /// # Errors
    /// As there.
    pub fn tend(&mut self, words: u64) -> Result<bool> {
        self.inner_mut().tend(words)
    }

    /// Inserts a key at a time, which becomes that of the window if it is the
    /// latest. True if it was certainly not in the window. One from before the
    /// window inserts nothing.
    ///
    /// # Errors
    /// As [`Self::insert`].
    pub fn insert_at<Q: Key<K> + ?Sized>(&mut self, key: &Q, time: u64) -> Result<bool> {
        let digest = key.digest_bits(&self.meta().identity.hasher);
        self.inner_mut().insert_bits_at(digest, time)
    }

    /// Whether a key may be in the window as it will be at a time from now on.
    #[must_use]
    pub fn contains_at<Q: Key<K> + ?Sized>(&self, key: &Q, now: u64) -> bool {
        let digest = key.digest_bits(&self.meta().identity.hasher);
        self.find(
            digest,
            self.ring.answered_at(self.ring.state().now.max(now)),
        ) != 0
    }

    /// How many generations ago a key was last inserted, at the least: 0 for
    /// the one that is being filled, which [`Window::generation`] describes as
    /// well as the others. `None` if it is certainly not in the window.
    #[must_use]
    pub fn age<Q: Key<K> + ?Sized>(&self, key: &Q) -> Option<u32> {
        self.age_bits(key.digest_bits(&self.meta().identity.hasher))
    }
}

/// [`WindowFilter`] over digests: the type of its keys is known at run time.
#[derive(Debug)]
pub struct Window {
    geometry: WindowGeometry,
    words: Words,
    touched: Touched,
    about: About,
    ring: Ring,
}

/// How many digests ahead of their turn a batch asks for their lines.
const AHEAD: usize = 16;

/// Lines of a digest that are fetched before it is asked about: those of an
/// absent key usually settle it.
const LINES_ASKED: usize = 4;

impl Window {
    /// A window for keys of the given identity that is planned for
    /// `promise.items` keys and forgets in steps of at most one part in
    /// `generations` of its span (see [`sizing::window_for`]).
    ///
    /// # Errors
    /// As for [`WindowFilter::timed`], or if `generations` is not possible.
    pub fn sized(
        identity: Identity,
        span: WindowSpan,
        promise: Promise,
        generations: u32,
    ) -> Result<Self> {
        let Promise { items, error } = promise;
        let geometry = sizing::window_for(items, error, generations, identity.collisions())?;
        Self::with_geometry(identity, span, geometry, promise)
    }

    /// A window of a given shape. That the shape keeps the promise is the
    /// caller's word.
    ///
    /// # Errors
    /// If the memory cannot be had, or the span or the promise is 0.
    pub fn with_geometry(
        identity: Identity,
        span: WindowSpan,
        geometry: WindowGeometry,
        promise: Promise,
    ) -> Result<Self> {
        sizing::check_items(promise.items)?;
        if let WindowSpan::Time { ticks: 0, .. } = span {
            return Err(Error::parameter("ticks", 0, "use a span of at least 1"));
        }
        Ok(Self {
            geometry,
            words: Words::zeroed(geometry.words())?,
            touched: Touched::none(geometry),
            about: About::new(identity, Some(promise)),
            ring: Ring::new(span, promise.items, geometry),
        })
    }

    /// Puts together what a file held. The words must fit the geometry.
    pub(crate) fn from_parts(
        about: About,
        geometry: WindowGeometry,
        words: Words,
        state: RingState,
    ) -> Result<Self> {
        debug_assert_eq!(words.get().len() as u64, geometry.words());
        let refuse = |name, got: &str, expected: &str| {
            Error::Format(FormatError::Field {
                name,
                got: got.to_owned(),
                expected: expected.to_owned(),
            })
        };
        let Some(promise) = about.promise else {
            return Err(refuse("n", "0", "at least 1, as the kind is window"));
        };
        let ring = Ring::restore(state, promise.items, geometry);
        Ok(Self {
            ring: ring.ok_or_else(|| refuse("window", "an impossible state", "a possible one"))?,
            touched: Touched::unknown(geometry),
            geometry,
            words,
            about,
        })
    }

    pub(crate) const fn words(&self) -> &Words {
        &self.words
    }

    pub(crate) const fn state(&self) -> &RingState {
        self.ring.state()
    }

    /// The shape.
    #[must_use]
    pub const fn geometry(&self) -> WindowGeometry {
        self.geometry
    }

    /// What the window spans.
    #[must_use]
    pub const fn span(&self) -> WindowSpan {
        self.ring.state().span
    }

    /// Keys that fill a generation.
    #[must_use]
    pub const fn generation_keys(&self) -> u64 {
        self.ring.capacity()
    }

    /// The time told last.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.ring.state().now
    }

    /// The generation of an age, as far back as there are any.
    #[must_use]
    pub fn generation(&self, age: u32) -> Option<Generation> {
        let age = usize::try_from(age).ok()?;
        self.ring.generations().get(age).copied()
    }

    /// Keys in the window and in the generation that is being filled, each
    /// once a generation.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.ring.held()
    }

    /// How many generations of a time window were forgotten before their time.
    #[must_use]
    pub const fn shortened(&self) -> u64 {
        self.ring.state().shortened
    }

    /// A time since which every key is found: the span before now or, where an
    /// overload shortened the window, later. 0 for a window of keys.
    #[must_use]
    pub fn complete_since(&self) -> u64 {
        self.ring.complete_since()
    }

    /// Whether a time is before a window of time: what comes then is not
    /// remembered.
    #[must_use]
    pub fn is_past(&self, time: u64) -> bool {
        self.ring.is_past(time)
    }

    /// Insertions, at a time that is now or earlier, that change a bit and which
    /// a time window takes before it is overloaded.
    #[must_use]
    pub fn room_at(&self, time: u64) -> u64 {
        self.ring.room_at(time)
    }

    /// [`WindowFilter::insert_at`] for a batch of one time.
    ///
    /// # Errors
    /// As [`crate::Insert::insert_digests`].
    pub fn insert_digests_at(
        &mut self,
        digests: &Digests,
        time: u64,
        mask: &mut [u64],
    ) -> Result<()> {
        if time >= self.now() {
            self.ring.advance(time);
            return self.insert_digests(digests, mask);
        }
        self.origin().accept(digests.origin())?;
        let mask = clear_mask(mask, digests.len())?;
        for (i, &digest) in digests.bits().iter().enumerate() {
            mask[i / 64] |= u64::from(self.insert_bits_at(digest, time)?) << (i % 64);
        }
        Ok(())
    }

    /// Whether keys may be in the window as it will be at a time from now on, for a
    /// batch: as [`crate::Contains::contains_digests`]. Changes nothing.
    ///
    /// # Errors
    /// As there.
    pub fn contains_digests_at(&self, digests: &Digests, now: u64, mask: &mut [u64]) -> Result<()> {
        self.origin().accept(digests.origin())?;
        let mask = clear_mask(mask, digests.len())?;
        let wanted = self.ring.answered_at(self.ring.state().now.max(now));
        for (i, &digest) in digests.bits().iter().enumerate() {
            mask[i / 64] |= u64::from(self.find(digest, wanted) != 0) << (i % 64);
        }
        Ok(())
    }

    /// Inserts at a time.
    fn insert_bits_at(&mut self, digest: u64, time: u64) -> Result<bool> {
        self.ring.advance(time);
        if time >= self.now() || self.span() == WindowSpan::Keys {
            return self.insert_bits(digest);
        }
        let (words, touched, geometry) = (self.words.get_mut()?, &mut self.touched, self.geometry);
        let (ring, lines) = (&mut self.ring, lines_of(geometry, digest));
        let found = slices::find(words, geometry, lines.clone(), ring.answered());
        if ring.is_past(time) {
            return Ok(found == 0);
        }
        if ring.is_due() {
            ring.turn();
        }
        let own = ring.age_back_to(time);
        if found != 0 && ring.age(found) as usize <= own {
            // It is in its generation, or in one that is remembered for longer.
            ring.note_late(ring.age(found) as usize, time, false);
            return Ok(false);
        }
        let Some(age) = ring.with_room(own) else {
            return self.insert_bits(digest);
        };
        let lane = ring.lane_of(age);
        let before = slices::set(words, touched, geometry, lines, lane);
        ring.note_late(age, time, before & lane == 0);
        clear(words, touched, geometry, ring.clearing());
        self.about.count(u64::from(found == 0));
        Ok(found == 0)
    }

    /// Tells a time window the time. One that lies before an earlier one, and
    /// any that a window of keys is told, changes nothing. Clears nothing.
    pub fn advance(&mut self, now: u64) {
        self.ring.advance(now);
    }

    /// Clears up to so many words of what has expired, so that the next
    /// generation can begin. Insertions do it in passing: this is for a
    /// time window that few keys come to, while the caller is idle. False when
    /// there is nothing left to clear.
    ///
    /// # Errors
    /// If the window was opened read-only.
    pub fn tend(&mut self, words: u64) -> Result<bool> {
        let bits = self.words.get_mut()?;
        let due = self.ring.clear_some(words);
        clear(bits, &mut self.touched, self.geometry, due);
        self.ring.turn();
        Ok(!self.ring.is_clean())
    }

    /// How many generations ago a digest was last inserted, at the least: see
    /// [`WindowFilter::age`].
    ///
    /// # Errors
    /// If the digest is of another origin.
    pub fn age_digest(&self, digest: Digest) -> Result<Option<u32>> {
        self.origin().accept(digest.origin)?;
        Ok(self.age_bits(digest.bits))
    }

    /// Whether inserting a digest at a time, which is now or earlier, would take
    /// no room, as far as the window now reaches back: it is in the generation of that
    /// time, or in one that is remembered for longer.
    ///
    /// # Errors
    /// As for [`Self::age_digest`].
    pub fn is_remembered_at(&self, digest: Digest, time: u64) -> Result<bool> {
        let age = self.age_digest(digest)?;
        Ok(age.is_some_and(|age| age as usize <= self.ring.age_at(time)))
    }

    fn age_bits(&self, digest: u64) -> Option<u32> {
        let found = self.find(digest, self.ring.answered());
        (found != 0).then(|| self.ring.age(found))
    }

    #[inline(always)]
    fn find(&self, digest: u64, wanted: u64) -> u64 {
        let lines = lines_of(self.geometry, digest);
        slices::find(self.words.get(), self.geometry, lines, wanted)
    }

    /// The share of positions that are set, over the generations that are
    /// answered.
    #[must_use]
    pub fn fill(&self) -> f64 {
        slices::fill(self.words.get(), self.geometry, self.ring.answered())
    }

    /// The error as the window stands now, from all of its words: the chance
    /// that a random absent key is "seen".
    #[must_use]
    pub fn error_now(&self) -> f64 {
        slices::error(self.words.get(), self.geometry, self.ring.answered())
    }
}

/// Clears what is due.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the words are in memory, so their indices fit a usize"
)]
#[inline(always)]
fn clear(
    words: &mut [u64],
    touched: &mut Touched,
    geometry: WindowGeometry,
    due: Option<ring::Clearing>,
) {
    if let Some(ring::Clearing { from, to, lanes }) = due {
        let range = from as usize..to as usize;
        slices::clear(words, touched, geometry, range, lanes);
    }
}

impl Bits for Window {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    #[inline]
    fn contains_bits(&self, digest: u64) -> bool {
        self.find(digest, self.ring.answered()) != 0
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        let (words, geometry) = (self.words.get(), self.geometry);
        for (i, &digest) in digests.iter().enumerate() {
            if let Some(&later) = digests.get(i + AHEAD) {
                slices::fetch(words, geometry, later, LINES_ASKED);
            }
            mask[i / 64] |= u64::from(self.contains_bits(digest)) << (i % 64);
        }
    }
}

impl BitsMut for Window {
    /// True if the key was certainly not in the window.
    #[inline]
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        let (words, touched, geometry) = (self.words.get_mut()?, &mut self.touched, self.geometry);
        let (ring, lines) = (&mut self.ring, lines_of(geometry, digest));
        if ring.is_due() {
            ring.turn();
        }
        if !ring.has_room() && slices::find(words, geometry, lines.clone(), ring.filling()) == 0 {
            let room = ring.make_room();
            if room.is_err() {
                clear(words, touched, geometry, ring.clearing());
                room?;
            }
        }
        let lane = ring.filling();
        let found = slices::set(words, touched, geometry, lines, lane);
        let new = found & ring.answered() == 0;
        ring.note(found & lane == 0);
        clear(words, touched, geometry, ring.clearing());
        self.about.count(u64::from(new));
        Ok(new)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        for (i, &digest) in digests.iter().enumerate() {
            if let Some(&later) = digests.get(i + AHEAD) {
                slices::fetch(self.words.get(), self.geometry, later, usize::MAX);
            }
            mask[i / 64] |= u64::from(self.insert_bits(digest)?) << (i % 64);
        }
        Ok(())
    }
}
