//! Fits that the models need and that `stats` does not have.

/// The line `a + b x` with the smallest relative errors: each point counts by its own size, so
/// that a response time of 100 us and one of 10 ms are met equally well.
///
/// `None` with fewer than two different x, or a y that is not positive.
pub fn line_relative(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.iter().any(|&(x, y)| !x.is_finite() || !y.is_finite() || y <= 0.0) {
        return None;
    }
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| term(x, y) / (y * y)).sum()
    };
    let (w, wx, wy) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y));
    let (wxx, wxy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
    let determinant = w * wxx - wx * wx;
    if determinant <= w * wxx * 1e-12 {
        return None;
    }
    let b = (w * wxy - wx * wy) / determinant;
    Some(((wy - b * wx) / w, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_line_is_found_and_small_points_count_as_much_as_large_ones() {
        let line = |x: f64| 100.0 + 8.0 * x;
        let exact: Vec<(f64, f64)> = [1.0, 8.0, 1024.0].map(|x| (x, line(x))).into();
        let (a, b) = line_relative(&exact).unwrap();
        assert!((a - 100.0).abs() < 1e-6 && (b - 8.0).abs() < 1e-9);
        // 5 % off at the far end, 415 us, moves the intercept by little over 1 us.
        let bent = [exact[0], exact[1], (1024.0, line(1024.0) * 1.05)];
        let (a, _) = line_relative(&bent).unwrap();
        assert!((a - 100.0).abs() < 2.0, "{a}");
    }

    #[test]
    fn what_is_no_line_is_none() {
        assert_eq!(line_relative(&[]), None);
        assert_eq!(line_relative(&[(1.0, 1.0)]), None);
        assert_eq!(line_relative(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(line_relative(&[(1.0, 1.0), (2.0, 0.0)]), None);
        assert_eq!(line_relative(&[(1.0, 1.0), (2.0, f64::NAN)]), None);
    }
}
