//! Probes and workloads: makes load, measures it, writes run records.
