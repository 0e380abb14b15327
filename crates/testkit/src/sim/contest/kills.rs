//! Hosts are killed at their times, in the midst of what their programs do.

use perf::units::{Instant, Nanos};

use super::host::{Ends, Host};
use super::scene::Scene;
use crate::plan::{Fault, Plan};

/// How long a kill waits for programs that others wait for, and how often it looks.
const LOOKS_MAX: usize = 200;
const LOOK: Nanos = Nanos::from_millis(1);

pub(super) async fn run(scene: &Scene, hosts: &[Host], plan: &Plan, begun: Instant) {
    for (at, fault) in plan.faults() {
        let (client, ends) = match fault {
            Fault::Kill { client } => (client, Ends::Alone),
            Fault::PowerLoss { client } => (client, Ends::WithPower),
            _ => continue,
        };
        scene.clock.sleep((begun + at).since(scene.clock.now())).await;
        for _ in 0..LOOKS_MAX {
            if hosts[client].kill(ends) {
                scene.truth.lock().killed(client, scene.clock.now());
                scene.history.count("killed");
                break;
            }
            scene.clock.sleep(LOOK).await;
        }
    }
}
