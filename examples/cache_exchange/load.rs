//! What clients ask for: few objects often, most of them rarely.

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / 2f64.powi(53)
    }
}

/// Objects by their popularity: that of rank r is asked for in proportion to
/// r^-0.8, as on the Web (Breslau et al., "Web Caching and Zipf-like
/// Distributions", 1999, found 0.64 to 0.83).
pub(crate) struct Popularity {
    /// The share of requests for an object or one before it.
    up_to: Vec<f64>,
}

impl Popularity {
    pub(crate) fn new(objects: usize) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=objects)
            .map(|rank| {
                sum += (rank as f64).powf(-0.8);
                sum
            })
            .collect();
        for share in &mut up_to {
            *share /= sum;
        }
        Self { up_to }
    }

    /// The path of an object.
    pub(crate) fn pick(&self, random: &mut Random) -> String {
        let share = random.share();
        format!("/object/{}", self.up_to.partition_point(|&s| s < share))
    }
}
