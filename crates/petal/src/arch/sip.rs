//! SipHash-1-3 with 128 bits of several keys in step, a key a lane.
//!
//! Owns the rounds over vectors. Which keys are hashed together, and how their
//! bytes become words, is `crate::sip`'s. The hash is by Aumasson and
//! Bernstein ("SipHash: a fast short-input PRF", 2012), with their constants;
//! the specification of these kernels is the `siphasher` crate.

/// Keys that are hashed together.
pub(crate) const LANES: usize = 16;

/// Most words of a key, the one with its last bytes and its length included.
pub(crate) const MOST_WORDS: usize = 32;

/// Keys in columns: word `i` of every lane together.
#[derive(Clone)]
pub(crate) struct Columns {
    /// What lies behind the last word of a lane has no effect.
    pub(crate) words: [[u64; LANES]; MOST_WORDS],
    /// Words of each lane, at most [`MOST_WORDS`].
    pub(crate) used: [u64; LANES],
}

/// The low and the high half of each lane's hash.
pub(crate) type Hashes = [[u64; LANES]; 2];

/// A kernel of this CPU. Its value proves that the CPU can run it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SipKernel {
    /// Eight lanes a vector.
    #[cfg(target_arch = "x86_64")]
    Avx512(super::wide::Avx512),
    /// Four lanes a vector.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

/// Proof that the CPU has AVX2: only [`SipKernel::all`] makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl SipKernel {
    /// The kernels that this CPU can run, the fastest first. None where keys
    /// are hashed one by one as fast.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let widest = super::wide::Avx512::new().map(Self::Avx512);
            let avx2 = super::wide::has_avx2().then_some(Self::Avx2(Avx2(())));
            widest.into_iter().chain(avx2)
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::iter::empty()
    }

    /// The hash of every lane under a key of two little-endian words.
    #[inline]
    pub(crate) fn hash(self, columns: &Columns, key: [u64; 2]) -> Hashes {
        match self {
            // SAFETY: the value proves that the CPU has the features.
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calling code compiled for AVX-512")]
            Self::Avx512(_) => unsafe { avx512::hash(columns, key) },
            // SAFETY: the value proves that the CPU has the features.
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "calling code compiled for AVX2")]
            Self::Avx2(_) => unsafe { avx2::hash(columns, key) },
        }
    }
}

/// The hash over vectors of `$width` lanes, two of them side by side so that
/// one works while the other waits. Where it expands there are `Vector`,
/// `load`, `store`, `splat`, `add`, `xor`, `rotate` and `choose`.
#[cfg(target_arch = "x86_64")]
macro_rules! in_step {
    ($features:literal, $width:literal) => {
        const PAIR: usize = 2 * $width;

        type Pair = [Vector; 2];

        #[target_feature(enable = $features)]
        #[inline]
        fn each(a: Pair, b: Pair, of: impl Fn(Vector, Vector) -> Vector) -> Pair {
            [of(a[0], b[0]), of(a[1], b[1])]
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn turned<const LEFT: i32, const RIGHT: i32>(a: Pair) -> Pair {
            [rotate::<LEFT, RIGHT>(a[0]), rotate::<LEFT, RIGHT>(a[1])]
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn round([a, b, c, d]: [Pair; 4]) -> [Pair; 4] {
            let a = each(a, b, |x, y| add(x, y));
            let b = each(turned::<13, 51>(b), a, |x, y| xor(x, y));
            let a = turned::<32, 32>(a);
            let c = each(c, d, |x, y| add(x, y));
            let d = each(turned::<16, 48>(d), c, |x, y| xor(x, y));
            let a = each(a, d, |x, y| add(x, y));
            let d = each(turned::<21, 43>(d), a, |x, y| xor(x, y));
            let c = each(c, b, |x, y| add(x, y));
            let b = each(turned::<17, 47>(b), c, |x, y| xor(x, y));
            [a, b, turned::<32, 32>(c), d]
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn taken([a, b, c, d]: [Pair; 4], word: Pair) -> [Pair; 4] {
            let d = each(d, word, |x, y| xor(x, y));
            let [a, b, c, d] = round([a, b, c, d]);
            [each(a, word, |x, y| xor(x, y)), b, c, d]
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn folded([a, b, c, d]: [Pair; 4]) -> Pair {
            let left = each(a, b, |x, y| xor(x, y));
            let right = each(c, d, |x, y| xor(x, y));
            each(left, right, |x, y| xor(x, y))
        }

        #[target_feature(enable = $features)]
        #[inline]
        fn both(value: u64) -> Pair {
            [splat(value); 2]
        }

        #[target_feature(enable = $features)]
        pub(super) fn hash(columns: &Columns, [k0, k1]: [u64; 2]) -> Hashes {
            let mut hashes = [[0; LANES]; 2];
            for first in (0..LANES).step_by(PAIR) {
                let (one, two) = (first, first + $width);
                let used = &columns.used[first..first + PAIR];
                let least = used.iter().copied().min().unwrap_or(0);
                let most = used.iter().copied().max().unwrap_or(0);
                let used = [load(&columns.used, one), load(&columns.used, two)];
                let mut state = [
                    both(k0 ^ 0x736f_6d65_7073_6575),
                    both(k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee),
                    both(k0 ^ 0x6c79_6765_6e65_7261),
                    both(k1 ^ 0x7465_6462_7974_6573),
                ];
                for (step, words) in (0..most).zip(&columns.words) {
                    let next = taken(state, [load(words, one), load(words, two)]);
                    if step < least {
                        state = next;
                    } else {
                        // Lanes that have no such word stay as they are.
                        for (old, new) in state.iter_mut().zip(next) {
                            *old = [
                                choose(used[0], step, old[0], new[0]),
                                choose(used[1], step, old[1], new[1]),
                            ];
                        }
                    }
                }
                let [a, b, c, d] = state;
                let mut state = [a, b, each(c, both(0xee), |x, y| xor(x, y)), d];
                for half in &mut hashes {
                    state = round(round(round(state)));
                    let [low, high] = folded(state);
                    store(half, one, low);
                    store(half, two, high);
                    let [a, b, c, d] = state;
                    state = [a, each(b, both(0xdd), |x, y| xor(x, y)), c, d];
                }
            }
            hashes
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i as Vector, _mm512_add_epi64, _mm512_cmpgt_epu64_mask, _mm512_loadu_si512,
        _mm512_mask_blend_epi64, _mm512_rol_epi64, _mm512_set1_epi64, _mm512_storeu_si512,
        _mm512_xor_si512,
    };

    use super::{Columns, Hashes, LANES};

    in_step!("avx512f", 8);

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(words: &[u64; LANES], at: usize) -> Vector {
        let words: &[u64] = &words[at..at + 8];
        // SAFETY: the pointer is to 64 readable bytes; alignment is not required.
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        unsafe {
            _mm512_loadu_si512(words.as_ptr().cast())
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn store(words: &mut [u64; LANES], at: usize, value: Vector) {
        let words: &mut [u64] = &mut words[at..at + 8];
        // SAFETY: the pointer is to 64 writable bytes; alignment is not required.
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        unsafe {
            _mm512_storeu_si512(words.as_mut_ptr().cast(), value);
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn splat(value: u64) -> Vector {
        _mm512_set1_epi64(value.cast_signed())
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add(a: Vector, b: Vector) -> Vector {
        _mm512_add_epi64(a, b)
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn xor(a: Vector, b: Vector) -> Vector {
        _mm512_xor_si512(a, b)
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn rotate<const LEFT: i32, const RIGHT: i32>(a: Vector) -> Vector {
        _mm512_rol_epi64::<LEFT>(a)
    }

    /// `new` in lanes that use more words than `step`, else `old`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn choose(used: Vector, step: u64, old: Vector, new: Vector) -> Vector {
        let more = _mm512_cmpgt_epu64_mask(used, splat(step));
        _mm512_mask_blend_epi64(more, old, new)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i as Vector, _mm256_add_epi64, _mm256_blendv_epi8, _mm256_cmpgt_epi64,
        _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_slli_epi64,
        _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
    };

    use super::{Columns, Hashes, LANES};

    in_step!("avx2", 4);

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(words: &[u64; LANES], at: usize) -> Vector {
        let words: &[u64] = &words[at..at + 4];
        // SAFETY: the pointer is to 32 readable bytes; alignment is not required.
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        unsafe {
            _mm256_loadu_si256(words.as_ptr().cast())
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn store(words: &mut [u64; LANES], at: usize, value: Vector) {
        let words: &mut [u64] = &mut words[at..at + 4];
        // SAFETY: the pointer is to 32 writable bytes; alignment is not required.
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        unsafe {
            _mm256_storeu_si256(words.as_mut_ptr().cast(), value);
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn splat(value: u64) -> Vector {
        _mm256_set1_epi64x(value.cast_signed())
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(a: Vector, b: Vector) -> Vector {
        _mm256_add_epi64(a, b)
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn xor(a: Vector, b: Vector) -> Vector {
        _mm256_xor_si256(a, b)
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn rotate<const LEFT: i32, const RIGHT: i32>(a: Vector) -> Vector {
        _mm256_or_si256(_mm256_slli_epi64::<LEFT>(a), _mm256_srli_epi64::<RIGHT>(a))
    }

    /// `new` in lanes that use more words than `step`, else `old`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn choose(used: Vector, step: u64, old: Vector, new: Vector) -> Vector {
        // Both are small: signed or not makes no difference.
        let more = _mm256_cmpgt_epi64(used, splat(step));
        _mm256_blendv_epi8(old, new, more)
    }
}
