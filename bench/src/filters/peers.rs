//! The other filters, and the list of all.
//!
//! Owns [`Filter`], which names a filter and builds it. A peer is sized through its own parameters
//! from the bits a key that the search (`sizing`) asks for. Peers that bring no hash function get
//! foldhash, the fastest they could have.

use std::hash::{BuildHasher, DefaultHasher, Hash};
use std::mem::size_of;

use bloomcraft::filters::CountingBloomFilter as BloomcraftCounting;
use bloomfilter::Bloom;
use cuckoofilter::CuckooFilter;
use fastbloom::{AtomicBloomFilter, BloomFilter};
use fastbloom_rs::{
    CountingBloomFilter as FastbloomRsCounting, Deletable, FilterBuilder, Membership,
};
use foldhash::fast::FixedState;
use growable_bloom_filter::{GrowableBloom, GrowableBloomBuilder};
use parquet::bloom_filter::Sbbf;
use parquet::data_type::AsBytes;
use sbbf_rs_safe::Filter as SplitBlock;
use xorf::{BinaryFuse8, Filter as _};

use crate::filters::contestant::{Contestant, OneByOne, Single};
use crate::filters::forgetting::{Deleting, Expiring, Rotated, Windowed};
use crate::filters::keys::Keys;
use crate::filters::petal::{Petal, PetalCounting, PetalKeys, PetalStatic};

/// Bytes of a block of the split block filters.
const SPLIT_BLOCK_BYTES: usize = 32;

/// A filter under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    Petal,
    Fastbloom,
    /// [`Filter::Fastbloom`] in memory for which pages of 2 MiB were asked.
    FastbloomHuge,
    FastbloomAtomic,
    SplitBlock,
    Parquet,
    Bloomfilter,
    BinaryFuse8,
    Growable,
    PetalCounting,
    FastbloomRsCounting,
    BloomcraftCounting,
    PetalWindow,
    Rotated,
    Expiring,
    PetalDeletable,
    PetalStatic,
    Qfilter,
    Cuckoo,
}

impl Filter {
    /// What the tables call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Petal => "petal",
            Self::Fastbloom => "fastbloom + foldhash",
            Self::FastbloomHuge => "fastbloom + foldhash, huge pages",
            Self::FastbloomAtomic => "fastbloom Atomic + foldhash",
            Self::SplitBlock => "sbbf-rs-safe + foldhash",
            Self::Parquet => "parquet Sbbf (XXH64)",
            Self::Bloomfilter => "bloomfilter (SipHash-1-3)",
            Self::BinaryFuse8 => "xorf BinaryFuse8",
            Self::Growable => "growable-bloom-filter (XXH3)",
            Self::PetalCounting => "petal CountingBloomFilter",
            Self::FastbloomRsCounting => "fastbloom-rs Counting (XXH3)",
            Self::BloomcraftCounting => "bloomcraft Counting",
            Self::PetalWindow => "petal WindowFilter",
            Self::Rotated => "two fastbloom + foldhash, rotated",
            Self::Expiring => "probabilistic-rs Expiring",
            Self::PetalDeletable => "petal DeletableFilter",
            Self::PetalStatic => "petal StaticFilter",
            Self::Qfilter => "qfilter (foldhash)",
            Self::Cuckoo => "cuckoofilter (SipHash-1-3)",
        }
    }

    /// Whether it is petal's.
    pub(crate) const fn is_petal(self) -> bool {
        matches!(
            self,
            Self::Petal
                | Self::PetalCounting
                | Self::PetalWindow
                | Self::PetalDeletable
                | Self::PetalStatic
        )
    }

    /// Whether it is sized by bits a key: petal sizes itself, and fuse, quotient and cuckoo filters
    /// leave no choice.
    pub(crate) const fn is_sized_by_bits(self) -> bool {
        !self.is_petal() && !matches!(self, Self::BinaryFuse8 | Self::Qfilter | Self::Cuckoo)
    }

    /// Whether it is so slow that a few rounds have to do.
    pub(crate) const fn is_slow(self) -> bool {
        matches!(
            self,
            Self::Parquet
                | Self::Bloomfilter
                | Self::Growable
                | Self::BloomcraftCounting
                | Self::Expiring
        )
    }

    /// An empty filter for `items` keys and an error of `error` by `bits_per_key`, where it has a say.
    pub(crate) fn build<K: PetalKeys>(
        self,
        items: usize,
        error: f64,
        bits_per_key: f64,
    ) -> Result<Box<dyn Contestant<K>>, String> {
        let bits = whole(items as f64 * bits_per_key).max(1);
        let foldhash = FixedState::default();
        Ok(match self {
            Self::Petal => {
                Box::new(Petal::<K>::new(items, error).map_err(|refused| refused.to_string())?)
            }
            Self::Fastbloom => one_by_one(
                BloomFilter::with_num_bits(bits)
                    .hasher(foldhash)
                    .expected_items(items),
            ),
            Self::FastbloomHuge => one_by_one(
                BloomFilter::from_vec(zeros_on_huge_pages(bits.div_ceil(64)))
                    .hasher(foldhash)
                    .expected_items(items),
            ),
            Self::FastbloomAtomic => one_by_one(
                AtomicBloomFilter::with_num_bits(bits)
                    .hasher(foldhash)
                    .expected_items(items),
            ),
            // Its own parameters are whole bits a key and keys; their product in blocks is what counts.
            Self::SplitBlock => one_by_one(SplitBlock::new(8, bits.div_ceil(8))),
            // From a bitset: its constructors round up to a power of two.
            Self::Parquet => {
                let blocks = bits.div_ceil(8 * SPLIT_BLOCK_BYTES);
                one_by_one(Sbbf::new(&vec![0; blocks * SPLIT_BLOCK_BYTES]))
            }
            Self::Bloomfilter => one_by_one(Bloom::<K::Key>::new_with_seed(
                bits.div_ceil(8),
                items,
                &std::array::from_fn(|byte| byte.to_le_bytes()[0]),
            )?),
            Self::BinaryFuse8 => Box::new(Fuse::new(&[])?),
            Self::Growable => one_by_one(Growable::new(error, bits)),
            Self::PetalCounting => Box::new(
                PetalCounting::<K>::new(items, error).map_err(|refused| refused.to_string())?,
            ),
            Self::FastbloomRsCounting => one_by_one(FastbloomRs::new(items, bits)),
            Self::BloomcraftCounting => Box::new(Bloomcraft::new(items, bits)),
            // At more than half of its slots it begins to refuse keys, and then loses others.
            Self::Cuckoo => one_by_one(CuckooFilter::with_capacity(2 * items.next_power_of_two())),
            Self::PetalWindow => {
                Box::new(Windowed::<K>::new(items, error).map_err(|refused| refused.to_string())?)
            }
            Self::Rotated => one_by_one(Rotated::new::<K>(items, bits)),
            Self::Expiring => one_by_one(Expiring::new::<K>(items, bits)?),
            Self::PetalDeletable => {
                Box::new(Deleting::<K>::new(items, error).map_err(|refused| refused.to_string())?)
            }
            Self::PetalStatic => {
                Box::new(PetalStatic::<K>::new(error).map_err(|refused| refused.to_string())?)
            }
            Self::Qfilter => one_by_one(
                qfilter::Filter::new(items as u64, error).map_err(|refused| refused.to_string())?,
            ),
        })
    }
}

fn one_by_one<K: Keys, F: Single<K::Key> + 'static>(filter: F) -> Box<dyn Contestant<K>> {
    Box::new(OneByOne(filter))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and nothing of that size can be built"
)]
fn whole(number: f64) -> usize {
    number.ceil() as usize
}

/// A vector of zeros whose memory is on pages of 2 MiB, where the system has them.
fn zeros_on_huge_pages(words: usize) -> Vec<u64> {
    use rustix::mm::{Advice, madvise};
    const PAGE: usize = 4096;

    let mut zeros: Vec<u64> = Vec::with_capacity(words);
    let start = zeros.as_mut_ptr().cast::<u8>();
    let to_page = start.align_offset(PAGE);
    let bytes = (words * size_of::<u64>()).saturating_sub(to_page);
    // SAFETY: the range lies inside of the vector's memory, and the advice does not change its bytes.
    #[expect(unsafe_code, reason = "advice takes a pointer")]
    let advised = unsafe { madvise(start.add(to_page).cast(), bytes, Advice::LinuxHugepage) };
    // Without such pages the run is merely slower.
    let _ = advised;
    zeros.resize(words, 0);
    zeros
}

impl<Q: Hash + ?Sized> Single<Q> for BloomFilter<FixedState> {
    fn insert(&mut self, key: &Q) {
        self.insert(key);
    }

    fn contains(&self, key: &Q) -> bool {
        self.contains(key)
    }

    fn bits(&self) -> usize {
        self.num_bits()
    }

    fn error_from_bits(&self) -> Option<f64> {
        let ones: u64 = self.iter().map(|word| u64::from(word.count_ones())).sum();
        let fill = ones as f64 / self.num_bits() as f64;
        Some(fill.powf(f64::from(self.num_hashes())))
    }
}

impl<Q: Hash + ?Sized> Single<Q> for AtomicBloomFilter<FixedState> {
    fn insert(&mut self, key: &Q) {
        Self::insert(self, key);
    }

    fn contains(&self, key: &Q) -> bool {
        self.contains(key)
    }

    fn bits(&self) -> usize {
        self.num_bits()
    }
}

impl<Q: Hash + ?Sized> Single<Q> for SplitBlock {
    fn insert(&mut self, key: &Q) {
        self.insert_hash(FixedState::default().hash_one(key));
    }

    fn contains(&self, key: &Q) -> bool {
        self.contains_hash(FixedState::default().hash_one(key))
    }

    fn bits(&self) -> usize {
        self.as_bytes().len() * 8
    }
}

impl<Q: AsBytes + ?Sized> Single<Q> for Sbbf {
    fn insert(&mut self, key: &Q) {
        self.insert(key);
    }

    fn contains(&self, key: &Q) -> bool {
        self.check(key)
    }

    fn bits(&self) -> usize {
        self.num_blocks() * SPLIT_BLOCK_BYTES * 8
    }
}

impl<Q: Hash + ?Sized> Single<Q> for Bloom<Q> {
    fn insert(&mut self, key: &Q) {
        self.set(key);
    }

    fn contains(&self, key: &Q) -> bool {
        self.check(key)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the bits are in memory")]
    fn bits(&self) -> usize {
        self.len() as usize
    }
}

/// growable-bloom-filter in a first stage that never fills.
struct Growable {
    filter: GrowableBloom,
    bits: usize,
}

impl Growable {
    /// It takes an error, which it rounds down to the next `k` with 2^-k, and a number of keys, from
    /// which a stage has `k * keys / ln 2` bits. With the next `k` below, the number is at least that
    /// of the keys, so that one stage does.
    fn new(error: f64, bits: usize) -> Self {
        let slices = (1.0 / error).log2().floor().max(1.0);
        let keys = whole(bits as f64 * std::f64::consts::LN_2 / slices);
        Self {
            filter: GrowableBloomBuilder::new()
                .desired_error_ratio((-slices).exp2())
                .estimated_insertions(keys)
                .build(),
            bits,
        }
    }
}

impl<Q: Hash + ?Sized> Single<Q> for Growable {
    fn insert(&mut self, key: &Q) {
        self.filter.insert(key);
    }

    fn contains(&self, key: &Q) -> bool {
        self.filter.contains(key)
    }

    fn bits(&self) -> usize {
        self.bits
    }
}

/// A fuse filter, which is built from all of its keys.
struct Fuse(BinaryFuse8);

impl Fuse {
    fn new(words: &[u64]) -> Result<Self, String> {
        Ok(Self(BinaryFuse8::try_from(words)?))
    }
}

impl<K: Keys> Contestant<K> for Fuse {
    fn insert(&mut self, keys: &K) {
        let words: Vec<u64> = keys.iter().map(K::word).collect();
        *self = Self::new(&words).expect("distinct words");
    }

    fn count(&mut self, keys: &K) -> usize {
        keys.iter()
            .filter(|key| self.0.contains(&K::word(key)))
            .count()
    }

    fn takes_all_at_once(&self) -> bool {
        true
    }

    fn bits(&self) -> usize {
        self.0.len() * 8
    }

    fn error_from_bits(&self) -> Option<f64> {
        None
    }
}

/// Bits of a counter in the filters below.
const COUNTER_BITS: usize = 4;

/// The best number of hashes for so many counters.
fn hashes(items: usize, counters: usize) -> usize {
    whole((counters as f64 / items as f64 * std::f64::consts::LN_2).round()).max(1)
}

/// fastbloom-rs in so many bits.
struct FastbloomRs {
    filter: FastbloomRsCounting,
    bits: usize,
}

impl FastbloomRs {
    fn new(items: usize, bits: usize) -> Self {
        // It takes words of 16 counters.
        let counters = (bits / COUNTER_BITS).next_multiple_of(16);
        let hashes = u32::try_from(hashes(items, counters)).unwrap_or(u32::MAX);
        Self {
            filter: FilterBuilder::from_size_and_hashes(counters as u64, hashes)
                .build_counting_bloom_filter(),
            bits: counters * COUNTER_BITS,
        }
    }
}

impl<Q: AsBytes + ?Sized> Single<Q> for FastbloomRs {
    fn insert(&mut self, key: &Q) {
        self.filter.add(key.as_bytes());
    }

    fn contains(&self, key: &Q) -> bool {
        self.filter.contains(key.as_bytes())
    }

    /// It does not say whether the key was there.
    fn remove(&mut self, key: &Q) -> Option<bool> {
        self.filter.remove(key.as_bytes());
        Some(true)
    }

    fn bits(&self) -> usize {
        self.bits
    }
}

/// bloomcraft in so many bits. It takes sized keys: the word of a key.
struct Bloomcraft {
    filter: BloomcraftCounting<u64>,
    bits: usize,
}

impl Bloomcraft {
    fn new(items: usize, bits: usize) -> Self {
        let counters = bits / COUNTER_BITS;
        Self {
            filter: BloomcraftCounting::with_params(counters, hashes(items, counters)),
            bits: counters * COUNTER_BITS,
        }
    }
}

impl<K: Keys> Contestant<K> for Bloomcraft {
    fn insert(&mut self, keys: &K) {
        for key in keys.iter() {
            self.filter.insert(&K::word(key));
        }
    }

    fn count(&mut self, keys: &K) -> usize {
        keys.iter()
            .filter(|key| self.filter.contains(&K::word(key)))
            .count()
    }

    fn remove(&mut self, keys: &K) -> Option<usize> {
        let words = keys.iter().map(K::word);
        Some(words.filter(|word| self.filter.delete(word)).count())
    }

    fn bits(&self) -> usize {
        self.bits
    }

    fn error_from_bits(&self) -> Option<f64> {
        None
    }
}

impl<Q: Hash + ?Sized> Single<Q> for CuckooFilter<DefaultHasher> {
    fn insert(&mut self, key: &Q) {
        self.add(key).expect("half of its slots are free");
    }

    fn contains(&self, key: &Q) -> bool {
        self.contains(key)
    }

    fn remove(&mut self, key: &Q) -> Option<bool> {
        Some(self.delete(key))
    }

    fn bits(&self) -> usize {
        self.memory_usage() * 8
    }
}
