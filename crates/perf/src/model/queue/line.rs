//! One line before m equal servers, Poisson arrivals, exponential service: M/M/1 and M/M/m.
//!
//! ```text
//! a = rate x service           offered load, in servers
//! U = a / m                    utilization
//! C = P(wait)                  Erlang's C; U for one server
//! R = service + C x service / (m - a)
//! ```
//!
//! Erlang's C comes from his B, and B from a recursion over its inverse, in which only positive
//! numbers are added: no factorials, no powers, and nothing to overflow.
//!
//! Source: Martin & Culler 1999, section 4.1 (CPU as M/M/1, disks as M/M/m); the formulas are those
//! of every textbook, for one Jain 1991, chapter 31.

use crate::model::error::{ModelError, positive, within};

/// Servers in a line: more have no use here, and the recursion has one step for each.
pub const SERVERS_MAX: u32 = 1_000_000;

/// A line before `servers` servers. Valid by construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    servers: u32,
    service_us: f64,
}

impl Line {
    /// m servers, of which each takes S (`service_us`, us) for a call on average.
    ///
    /// Fails unless m is 1 to [`SERVERS_MAX`] and S is above 0.
    pub fn new(servers: u32, service_us: f64) -> Result<Self, ModelError> {
        within("servers", servers.into(), 1, SERVERS_MAX.into())?;
        Ok(Self { servers, service_us: positive("service time", service_us)? })
    }

    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// S, us.
    pub fn service_us(&self) -> f64 {
        self.service_us
    }

    /// m / S, calls a second: the rate at which all servers are busy all the time.
    pub fn saturation_per_s(&self) -> f64 {
        f64::from(self.servers) * 1e6 / self.service_us
    }

    /// U, share of each server's time, for arrivals at `per_s`; 1 or more: no steady state.
    pub fn utilization(&self, per_s: f64) -> f64 {
        per_s / self.saturation_per_s()
    }

    /// Erlang's C: the share of calls that find all servers busy. `None` where there is no steady
    /// state (a rate at or above the saturation, or no rate at all: negative, not a number).
    pub fn waits(&self, per_s: f64) -> Option<f64> {
        let utilization = self.utilization(per_s);
        if !(0.0..1.0).contains(&utilization) {
            return None;
        }
        if per_s == 0.0 {
            return Some(0.0);
        }
        let offered = utilization * f64::from(self.servers);
        let mut blocked_inverse = 1.0;
        for busy in 1..=self.servers {
            blocked_inverse = 1.0 + blocked_inverse * f64::from(busy) / offered;
            if blocked_inverse.is_infinite() {
                return Some(0.0); // so many idle servers that nobody ever waits
            }
        }
        let blocked = 1.0 / blocked_inverse;
        Some(blocked / (1.0 - utilization * (1.0 - blocked)))
    }

    /// R, us: mean time from arrival to the end of service. `None` without a steady state.
    pub fn response_us(&self, per_s: f64) -> Option<f64> {
        let idle = f64::from(self.servers) * (1.0 - self.utilization(per_s));
        Some(self.service_us * (1.0 + self.waits(per_s)? / idle))
    }

    /// Calls waiting and in service, by Little's law. `None` without a steady state.
    pub fn calls(&self, per_s: f64) -> Option<f64> {
        Some(per_s * self.response_us(per_s)? / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_near(got: f64, want: f64) {
        assert!((got - want).abs() <= 1e-9 * want.abs().max(1.0), "{got} is not {want}");
    }

    /// Response time in units of the service time, at an offered load in servers.
    fn stretch(servers: u32, offered: f64) -> f64 {
        Line::new(servers, 1e6).unwrap().response_us(offered).unwrap() / 1e6
    }

    #[test]
    fn one_server_stretches_the_service_time_by_what_is_left_of_it() {
        for utilization in [0.0, 0.1, 0.5, 0.8, 0.99, 0.999_999] {
            assert_near(stretch(1, utilization) * (1.0 - utilization), 1.0);
        }
        // A gateway of 125 packets a second and 2 ms for each (Jain 1991, example 31.1): a
        // utilization of 1/4, 1/3 of a packet inside, 2.667 ms.
        let gateway = Line::new(1, 2_000.0).unwrap();
        assert_near(gateway.utilization(125.0), 0.25);
        assert_near(gateway.calls(125.0).unwrap(), 1.0 / 3.0);
        assert_near(gateway.response_us(125.0).unwrap(), 8_000.0 / 3.0);
    }

    #[test]
    fn two_servers_follow_the_closed_form() {
        for offered in [0.1, 0.5, 1.0, 1.5, 1.99] {
            let utilization: f64 = offered / 2.0;
            assert_near(stretch(2, offered) * (1.0 - utilization.powi(2)), 1.0);
            let waits = Line::new(2, 1e6).unwrap().waits(offered).unwrap();
            assert_near(waits, 2.0 * utilization.powi(2) / (1.0 + utilization));
        }
        // Three servers at two thirds: C = 4/9.
        assert_near(Line::new(3, 1e6).unwrap().waits(2.0).unwrap(), 4.0 / 9.0);
    }

    /// The same from the definition: probabilities of the birth-death process, summed.
    #[test]
    fn many_servers_agree_with_the_sum_over_the_states() {
        for (servers, offered) in [(5_u32, 4.0), (24, 10.464), (28, 27.5)] {
            let m = f64::from(servers);
            let (mut weight, mut all, mut calls) = (1.0_f64, 0.0, 0.0);
            for n in 0..40_000_u32 {
                all += weight;
                calls += f64::from(n) * weight;
                weight *= offered / f64::from(n + 1).min(m);
            }
            let line = Line::new(servers, 1e6).unwrap();
            assert_near(line.calls(offered).unwrap(), calls / all);
        }
    }

    #[test]
    fn a_hundred_thousand_servers_neither_overflow_nor_underflow() {
        let line = Line::new(100_000, 1e6).unwrap();
        assert_near(line.waits(1.0).unwrap(), 0.0);
        let waits = line.waits(99_900.0).unwrap();
        assert!((0.6..0.8).contains(&waits), "{waits}");
    }

    #[test]
    fn without_a_steady_state_there_is_no_response_time() {
        let line = Line::new(2, 1000.0).unwrap();
        assert_eq!(line.saturation_per_s(), 2000.0);
        for per_s in [2000.0, 2001.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(line.response_us(per_s), None);
        }
        assert!(line.response_us(1999.999).is_some());
    }

    #[test]
    fn what_is_no_line_is_refused() {
        assert!(Line::new(0, 1.0).is_err());
        assert!(Line::new(SERVERS_MAX + 1, 1.0).is_err());
        for service_us in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Line::new(1, service_us).is_err());
        }
    }
}
