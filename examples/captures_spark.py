"""Questions to the captures of many hosts and days, for Spark: captures.sql has them for DuckDB.

    spark-submit examples/captures_spark.py 'hdfs:///captures/*.parquet'
"""

import sys

QUERIES = {
    "what is called how often, and how long it takes": """
        SELECT operation, count(*) AS calls,
               percentile_approx(latency_us, 0.5) AS p50_us,
               percentile_approx(latency_us, 0.99) AS p99_us
        FROM calls GROUP BY operation ORDER BY calls DESC""",
    "who asks most of each server": """
        SELECT server, client, count(*) AS calls, sum(bytes) AS bytes, avg(latency_us) AS mean_us
        FROM calls GROUP BY server, client ORDER BY calls DESC LIMIT 20""",
    "each minute: operations a second and their p99": """
        SELECT floor(call_ns / 60000000000) * 60 AS minute, server, count(*) / 60.0 AS calls_per_s,
               percentile_approx(latency_us, 0.99) AS p99_us
        FROM calls GROUP BY floor(call_ns / 60000000000) * 60, server ORDER BY server, minute""",
    "the files that are written most": """
        SELECT file, sum(bytes) AS written, avg(bytes) AS bytes_for_each_call,
               percentile_approx(latency_us, 0.99) AS p99_us
        FROM calls WHERE operation = 'WRITE' GROUP BY file ORDER BY written DESC LIMIT 20""",
    "of a hundred calls, those that only ask for attributes": """
        SELECT client,
               100.0 * sum(CASE WHEN operation IN ('GETATTR', 'ACCESS', 'LOOKUP') THEN 1 ELSE 0 END)
                   / count(*) AS percent,
               count(*) AS calls
        FROM calls GROUP BY client ORDER BY percent DESC LIMIT 20""",
    "what fails, and for whom": """
        SELECT status, operation, client, count(*) AS calls
        FROM calls WHERE status <> '0' GROUP BY status, operation, client
        ORDER BY calls DESC LIMIT 20""",
}


def main(paths):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("nfskit-captures").getOrCreate()
    spark.read.option("mergeSchema", True).parquet(*paths).createOrReplaceTempView("calls")
    for question, query in QUERIES.items():
        print(question)
        spark.sql(query).show(truncate=False)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: spark-submit captures_spark.py PARQUET...")
    main(sys.argv[1:])
