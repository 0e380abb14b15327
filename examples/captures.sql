-- Questions to the captures of many hosts and days. Each host turns its own into Parquet:
--
--   nfskit trace monday.pcap.gz --parquet parquet/$(hostname)-monday.parquet
--
-- and this reads them all, where they lie:
--
--   duckdb -c ".read examples/captures.sql"
--
-- A row is a call that got its reply. Times are nanoseconds since 1970, latencies microseconds as seen where
-- the capture was made. docs/trace.md has all columns.

CREATE OR REPLACE VIEW calls AS
SELECT *, make_timestamp_ns(call_ns) AS called_at_utc
FROM read_parquet('parquet/*.parquet', filename = true, union_by_name = true);

-- What is called how often, and how long it takes.
SELECT operation, count(*) AS calls, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent,
       round(quantile_cont(latency_us, 0.5)) AS p50_us, round(quantile_cont(latency_us, 0.99)) AS p99_us
FROM calls GROUP BY operation ORDER BY calls DESC;

-- Who asks most of each server.
SELECT server, client, count(*) AS calls, sum(bytes) AS bytes, round(avg(latency_us)) AS mean_us
FROM calls GROUP BY server, client ORDER BY calls DESC LIMIT 20;

-- Each minute: operations a second and their p99. Where p99 rises and the rate does not, the server is slow;
-- where both rise, it is busy.
SELECT time_bucket(INTERVAL 1 minute, called_at_utc) AS minute, server, round(count(*) / 60.0, 1) AS calls_per_s,
       round(quantile_cont(latency_us, 0.99)) AS p99_us
FROM calls GROUP BY minute, server ORDER BY server, minute;

-- The files that are written most, and how much of it is written in one call.
SELECT file, sum(bytes) AS written, round(avg(bytes)) AS bytes_for_each_call,
       round(quantile_cont(latency_us, 0.99)) AS p99_us
FROM calls WHERE operation = 'WRITE' GROUP BY file ORDER BY written DESC LIMIT 20;

-- Of a hundred calls, those that only ask for attributes: over 60, longer attribute caching would help.
SELECT client, round(100.0 * count(*) FILTER (operation IN ('GETATTR', 'ACCESS', 'LOOKUP')) / count(*), 1) AS percent,
       count(*) AS calls
FROM calls GROUP BY client ORDER BY percent DESC LIMIT 20;

-- What fails, and for whom.
SELECT status, operation, client, count(*) AS calls
FROM calls WHERE status <> '0' GROUP BY ALL ORDER BY calls DESC LIMIT 20;
