//! Eigenvalues of a small symmetric matrix, by Jacobi's rotations: for the handful of parameters of
//! a fit, which do not ask for a crate of linear algebra.

/// Rounds over all pairs at most; five to ten are the rule.
const ROUNDS_MAX: usize = 100;

/// Eigenvalues, and to each its direction of length 1. The matrix has to be square and symmetric.
pub(crate) fn eigen(mut matrix: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = matrix.len();
    let unit = |i: usize| (0..n).map(|j| if i == j { 1.0 } else { 0.0 }).collect();
    let mut directions: Vec<Vec<f64>> = (0..n).map(unit).collect();
    for _ in 0..ROUNDS_MAX {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let off = matrix[p][q];
                if off.abs() <= f64::EPSILON * (matrix[p][p] * matrix[q][q]).abs().sqrt() {
                    continue;
                }
                rotated = true;
                let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * off);
                let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let cosine = 1.0 / tangent.hypot(1.0);
                let turn = |a: &mut f64, b: &mut f64| {
                    (*a, *b) = (cosine * (*a - tangent * *b), cosine * (*b + tangent * *a));
                };
                for row in &mut matrix {
                    let (left, right) = row.split_at_mut(q);
                    turn(&mut left[p], &mut right[0]);
                }
                let (above, below) = matrix.split_at_mut(q);
                for (a, b) in above[p].iter_mut().zip(&mut below[0]) {
                    turn(a, b);
                }
                let (above, below) = directions.split_at_mut(q);
                for (a, b) in above[p].iter_mut().zip(&mut below[0]) {
                    turn(a, b);
                }
            }
        }
        if !rotated {
            break;
        }
    }
    ((0..n).map(|i| matrix[i][i]).collect(), directions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_directions_make_the_matrix_again() {
        let matrix = vec![vec![4.0, 1.0, -2.0], vec![1.0, 2.0, 0.5], vec![-2.0, 0.5, 3.0]];
        let (values, directions) = eigen(matrix.clone());
        for i in 0..3 {
            for j in 0..3 {
                let sum: f64 =
                    (0..3).map(|k| values[k] * directions[k][i] * directions[k][j]).sum();
                assert!((sum - matrix[i][j]).abs() < 1e-12, "{i} {j}: {sum}");
            }
        }
    }

    #[test]
    fn a_direction_without_strength_is_found() {
        let (values, directions) = eigen(vec![vec![1.0, 1.0], vec![1.0, 1.0]]);
        let weakest = if values[0] < values[1] { 0 } else { 1 };
        assert!(values[weakest].abs() < 1e-15 && (values[1 - weakest] - 2.0).abs() < 1e-15);
        assert!((directions[weakest][0] + directions[weakest][1]).abs() < 1e-15);
        assert_eq!(eigen(Vec::new()), (Vec::new(), Vec::new()));
        assert_eq!(eigen(vec![vec![0.0, 0.0], vec![0.0, 0.0]]).0, [0.0, 0.0]);
    }
}
