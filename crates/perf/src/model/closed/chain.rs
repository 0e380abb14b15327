//! The same networks solved the long way, to test against: every state, every rate between two
//! states, and the linear equations of the steady state. For a handful of callers.
//!
//! A state is how many calls of each class are at each center, thinking included. A center shares
//! its servers among those there, which has the same means as first come, first served in the
//! networks that mean value analysis solves exactly.

use std::collections::HashMap;

use super::network::{Kind, Network, Solution};

/// Calls at [class][place]; the last place is thinking.
type State = Vec<Vec<u32>>;

pub(super) fn solve(network: &Network) -> Solution {
    let (classes, places) = (network.classes.len(), network.centers.len() + 1);
    let states = states(network, places);
    let index: HashMap<&State, usize> = states.iter().enumerate().map(|(i, s)| (s, i)).collect();
    let mut matrix = vec![vec![0.0; states.len() + 1]; states.len()];
    for (from, state) in states.iter().enumerate() {
        for c in 0..classes {
            for place in 0..places {
                let rate = rate(network, state, c, place);
                if rate == 0.0 {
                    continue;
                }
                // Around in a circle, past places without a demand.
                let mut to = (place + 1) % places;
                while demand(network, c, to) == 0.0 {
                    to = (to + 1) % places;
                }
                let mut next = state.clone();
                next[c][place] -= 1;
                next[c][to] += 1;
                let next = index[&next];
                matrix[next][from] += rate;
                matrix[from][from] -= rate;
            }
        }
    }
    matrix[0].fill(1.0); // in place of one equation, which follows from the others: all sum to 1
    let p = eliminate(matrix);

    let mean = |of: &dyn Fn(&State) -> f64| -> f64 {
        states.iter().zip(&p).map(|(state, p)| p * of(state)).sum()
    };
    let throughput_per_s: Vec<f64> = (0..classes)
        .map(|c| {
            let place = (0..places).find(|&place| demand(network, c, place) > 0.0).unwrap();
            mean(&|state| rate(network, state, c, place)) * 1e6
        })
        .collect();
    let centers = (0..places - 1).map(|k| {
        let residence_us: Vec<f64> = (0..classes)
            .map(|c| mean(&|state| f64::from(state[c][k])) / throughput_per_s[c] * 1e6)
            .collect();
        network.centers[k].at(residence_us, &throughput_per_s)
    });
    let centers: Vec<_> = centers.collect();
    let response = |c: usize| centers.iter().map(|center| center.residence_us[c]).sum::<f64>();
    Solution { response_us: (0..classes).map(response).collect(), throughput_per_s, centers }
}

fn demand(network: &Network, class: usize, place: usize) -> f64 {
    match network.centers.get(place) {
        Some(center) => center.demands_us[class],
        None => network.classes[class].think_us,
    }
}

/// Calls of a class that leave a place, per us.
fn rate(network: &Network, state: &State, class: usize, place: usize) -> f64 {
    let here = f64::from(state[class][place]);
    if here == 0.0 {
        return 0.0;
    }
    let all: f64 = state.iter().map(|class| f64::from(class[place])).sum();
    let servers = match network.centers.get(place).map(|center| center.kind) {
        None | Some(Kind::Delay) => all,
        Some(Kind::Queue) => 1.0,
        Some(Kind::Servers(servers)) => f64::from(servers).min(all),
    };
    servers * here / all / demand(network, class, place)
}

fn states(network: &Network, places: usize) -> Vec<State> {
    let mut states: Vec<State> = vec![Vec::new()];
    for (c, class) in network.classes.iter().enumerate() {
        let mut spread = vec![Vec::new()];
        for place in 0..places {
            let most = if demand(network, c, place) > 0.0 { class.callers } else { 0 };
            spread = spread
                .into_iter()
                .flat_map(|some: Vec<u32>| {
                    (0..=most).map(move |here| some.iter().copied().chain([here]).collect())
                })
                .collect();
        }
        spread.retain(|some| some.iter().sum::<u32>() == class.callers);
        states = states
            .into_iter()
            .flat_map(|state| {
                spread.iter().map(move |one| state.iter().cloned().chain([one.clone()]).collect())
            })
            .collect();
    }
    states
}

/// Gauss, with the largest pivot.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let n = matrix.len();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))
            .unwrap();
        matrix.swap(column, pivot);
        let row = matrix[column].clone();
        for (i, other) in matrix.iter_mut().enumerate() {
            if i != column && other[column] != 0.0 {
                let factor = other[column] / row[column];
                for j in column..=n {
                    other[j] -= factor * row[j];
                }
            }
        }
    }
    (0..n).map(|i| matrix[i][n] / matrix[i][i]).collect()
}
