//! What a closed network consists of, and what its solution says.

use crate::model::error::{ModelError, not_negative, within};

/// Classes in a network, centers in a network, callers in a class. Each is more than a question
/// about a file server needs, and keeps a mistake from running for hours.
pub const CLASSES_MAX: usize = 16;
pub const CENTERS_MAX: usize = 1_024;
pub const CALLERS_MAX: u32 = 1_000_000;

/// How a center serves those who are there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// One server and a line.
    Queue,
    /// So many equal servers behind one line.
    Servers(u32),
    /// As many servers as there are callers: nobody waits.
    Delay,
}

/// A place where calls spend time.
#[derive(Clone, Debug, PartialEq)]
pub struct Center {
    pub name: String,
    pub kind: Kind,
    /// D = visits x service time of a call (us), for each class.
    pub demands_us: Vec<f64>,
}

/// Callers that behave alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// N: callers, each with at most one call under way.
    pub callers: u32,
    /// Z: us from a reply to the next call.
    pub think_us: f64,
}

/// Classes of callers and the centers that they visit. Valid by construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub(super) classes: Vec<Class>,
    pub(super) centers: Vec<Center>,
}

/// Means in the steady state.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// X of each class, calls a second.
    pub throughput_per_s: Vec<f64>,
    /// R of each class, us, without the think time.
    pub response_us: Vec<f64>,
    /// In the order of the network's centers.
    pub centers: Vec<At>,
}

/// Means at one center.
#[derive(Clone, Debug, PartialEq)]
pub struct At {
    /// What a call of each class spends here, waiting and in service, us.
    pub residence_us: Vec<f64>,
    /// Calls here, of all classes.
    pub calls: f64,
    /// Share of each server's time that is busy; of a delay, the calls in it.
    pub utilization: f64,
}

impl Center {
    pub fn new(name: &str, kind: Kind, demands_us: &[f64]) -> Self {
        Self { name: name.to_owned(), kind, demands_us: demands_us.to_vec() }
    }

    /// Servers, as a number; infinite for a delay.
    pub(super) fn servers(&self) -> f64 {
        match self.kind {
            Kind::Queue => 1.0,
            Kind::Servers(servers) => f64::from(servers),
            Kind::Delay => f64::INFINITY,
        }
    }

    pub(super) fn at(&self, residence_us: Vec<f64>, throughput_per_s: &[f64]) -> At {
        let per_us = |class: usize| throughput_per_s[class] / 1e6;
        let sum = |times: &[f64]| -> f64 {
            times.iter().enumerate().map(|(class, us)| per_us(class) * us).sum()
        };
        let busy = sum(&self.demands_us);
        let servers = if self.kind == Kind::Delay { 1.0 } else { self.servers() };
        At { calls: sum(&residence_us), utilization: busy / servers, residence_us }
    }
}

impl Network {
    /// Fails where a class or a center is missing, a time is negative or none, the numbers of
    /// classes and demands differ, a call of a class would take no time at all, or a number is over
    /// its maximum.
    pub fn new(classes: Vec<Class>, centers: Vec<Center>) -> Result<Self, ModelError> {
        within("classes", classes.len() as u64, 1, CLASSES_MAX as u64)?;
        within("centers", centers.len() as u64, 1, CENTERS_MAX as u64)?;
        for center in &centers {
            if center.demands_us.len() != classes.len() {
                let (got, need) = (center.demands_us.len(), classes.len());
                return Err(ModelError::Count { what: "demands of a center", got, need });
            }
            if let Kind::Servers(servers) = center.kind {
                within("servers of a center", servers.into(), 1, CALLERS_MAX.into())?;
            }
            for &us in &center.demands_us {
                not_negative("demand", us)?;
            }
        }
        for (index, class) in classes.iter().enumerate() {
            within("callers", class.callers.into(), 0, CALLERS_MAX.into())?;
            not_negative("think time", class.think_us)?;
            let all: f64 = centers.iter().map(|center| center.demands_us[index]).sum();
            crate::model::error::positive("a class's time for a call", class.think_us + all)?;
        }
        Ok(Self { classes, centers })
    }

    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    pub fn centers(&self) -> &[Center] {
        &self.centers
    }

    /// The same with other numbers of callers.
    pub fn with_callers(&self, callers: &[u32]) -> Result<Self, ModelError> {
        let (got, need) = (callers.len(), self.classes.len());
        if got != need {
            return Err(ModelError::Count { what: "callers", got, need });
        }
        let class = |(class, &callers): (&Class, &u32)| Class { callers, ..*class };
        let classes = self.classes.iter().zip(callers).map(class).collect();
        Self::new(classes, self.centers.clone())
    }

    /// The center with the highest utilization in a solution; delays are none.
    pub fn bottleneck(&self, solution: &Solution) -> Option<&Center> {
        let queues = self.centers.iter().zip(&solution.centers);
        let queues = queues.filter(|(center, _)| center.kind != Kind::Delay);
        let busiest = queues.max_by(|(_, a), (_, b)| a.utilization.total_cmp(&b.utilization));
        busiest.map(|(center, _)| center)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Class = Class { callers: 1, think_us: 0.0 };

    #[test]
    fn networks_that_mean_nothing_are_refused() {
        let queue = |us: &[f64]| Center::new("disk", Kind::Queue, us);
        assert!(Network::new(vec![ONE], vec![queue(&[1.0])]).is_ok());
        assert!(Network::new(vec![], vec![queue(&[])]).is_err());
        assert!(Network::new(vec![ONE], vec![]).is_err());
        assert!(Network::new(vec![ONE], vec![queue(&[1.0, 2.0])]).is_err());
        for us in [-1.0, f64::NAN, f64::INFINITY, 0.0] {
            assert!(Network::new(vec![ONE], vec![queue(&[us])]).is_err());
        }
        let crowd = Class { callers: CALLERS_MAX + 1, ..ONE };
        assert!(Network::new(vec![crowd], vec![queue(&[1.0])]).is_err());
        let none = Center::new("disks", Kind::Servers(0), &[1.0]);
        assert!(Network::new(vec![ONE], vec![none]).is_err());
        let network = Network::new(vec![ONE], vec![queue(&[1.0])]).unwrap();
        assert!(network.with_callers(&[1, 2]).is_err());
    }
}
