-- One row per run and arm: where it was measured, how its answers came to be, and two identities.
-- Runs with equal `identity` asked the same questions of the same code: repeats of one another.
-- `arm_identity` leaves out the product, the question and the trial: one arm at any point.
-- `arm_config` is its configuration and files alone.
CREATE VIEW arm_runs AS
SELECT
    captures.run_id,
    any_value(runs.name) AS name,
    any_value(runs.status) AS status,
    any_value(runs.started_at) AS started_at,
    any_value(runs.verdict) AS verdict,
    any_value(runs.panel_digest) AS panel_digest,
    any_value(runs.product_repo) AS product_repo,
    any_value(runs.product_commit) AS product_commit,
    any_value(runs.product_tree) AS product_tree,
    any_value(runs.environment_digest) AS environment_digest,
    captures.arm,
    any_value(captures.role) AS role,
    count(*) FILTER (captures.evidence = 'executed') AS executed,
    count(*) FILTER (captures.evidence = 'replayed') AS replayed,
    count(*) FILTER (captures.status = 'infra') AS infra,
    count(*) FILTER (captures.status = 'abstained') AS abstained,
    count(*) FILTER (len(captures.degraded) > 0) AS degraded_answers,
    list_sort(list_distinct(list(captures.source_run_id))) AS source_run_ids,
    list_sort(list_distinct(flatten(list(captures.degraded)))) AS degraded,
    md5(string_agg(captures.key, ',' ORDER BY captures.key)) AS identity,
    md5(any_value(
        concat_ws(chr(10), captures.key_parts['arm'], captures.key_parts['artifacts'])
    )) AS arm_config,
    md5(any_value(
        concat_ws(
            chr(10),
            captures.key_parts['schema'],
            captures.key_parts['arm'],
            captures.key_parts['artifacts'],
            captures.key_parts['code'],
            captures.key_parts['interpreter'],
            captures.key_parts['binaries'],
            captures.key_parts['environment']
        )
    )) AS arm_identity
FROM captures
JOIN runs USING (run_id)
GROUP BY captures.run_id, captures.arm;
