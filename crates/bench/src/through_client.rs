//! Options of workloads that write to a server through our client.

use clap::Args;
use client::files::Options;
use client::mount::Options as MountOptions;
use client::url::Target;
use client::write_behind::PolicyName;
use harness::exit::Failure;
use harness::values::{size, time};
use harness::{emulated, records, target};
use net::clock::Clock;
use net::shape::Shape;
use net::shape::profile::Profile;
use perf::record::Run as Record;
use perf::units::Nanos;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct ThroughClient {
    /// How our client holds writes back: linux-2.4.4, no-flush, hashed, unlocked or adaptive.
    #[arg(long, value_name = "NAME", default_value_t, requires = "target")]
    write_policy: PolicyName,
    /// Most bytes in a WRITE of our client [default: what the server prefers].
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "target")]
    wsize: Option<u64>,
    /// Bytes that each client may hold which are not yet on the server's disk.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "target")]
    #[arg(default_value = "256M")]
    dirty_max: u64,
    /// How long a call of the protocol may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    #[arg(requires = "target")]
    reply_limit: Nanos,
    /// An emulated link in front of each server.
    #[arg(long, value_name = "PROFILE", requires = "target")]
    link: Option<Profile>,
}

impl ThroughClient {
    pub(crate) fn policy(&self) -> PolicyName {
        self.write_policy
    }

    /// # Errors
    /// This machine cannot delay messages as the link wants it.
    pub(crate) async fn calibrate(&self, clock: &Clock) -> Result<(), Failure> {
        emulated::calibrate(clock, &self.link()).await.map(drop)
    }

    /// To `target` over the link.
    pub(crate) fn over_link(&self, target: &Target) -> MountOptions {
        target::options(target, self.reply_limit, self.link().into())
    }

    /// To `target` for what is not measured.
    pub(crate) fn beside_link(&self, target: &Target) -> MountOptions {
        target::options(target, self.reply_limit, Shape::default())
    }

    /// No larger WRITEs than the server takes, whatever is given.
    pub(crate) fn files(&self) -> Options {
        let mut options = Options::default();
        options.write.policy = self.write_policy;
        options.write.dirty_bytes_max = self.dirty_max;
        if let Some(wsize) = self.wsize {
            options.write.wsize = u32::try_from(wsize).unwrap_or(u32::MAX);
        }
        options
    }

    pub(crate) fn record(&self, record: &mut Record) {
        let given = [
            ("write_policy", json!(self.write_policy.to_string())),
            ("dirty_bytes_max", json!(self.dirty_max)),
            ("link", json!(self.link().to_string())),
        ];
        records::parameters(record, given);
        record.target.wsize = self.wsize;
    }

    /// No throughput of these names is above the link's.
    pub(crate) fn limit(&self, record: &mut Record, names: &[&str]) {
        records::limit_to(record, self.link.as_ref().and_then(Profile::mib_per_s), names);
    }

    pub(crate) fn link(&self) -> Profile {
        self.link.clone().unwrap_or_default()
    }
}
