-- One row per run, arm and measure: the mean over the panel's tasks, with its denominator.
CREATE VIEW arm_scores AS
SELECT
    scores.run_id,
    runs.started_at,
    runs.name,
    scores.panel_digest,
    scores.product_commit,
    scores.product_tree,
    scores.arm,
    scores.role,
    scores.measure,
    scores.cutoff,
    avg(scores.value) AS value,
    sum(scores.value) AS total,
    any_value(scores.n) AS n,
    any_value(scores.trials) AS trials,
    count(*) FILTER (scores.is_infra) AS infra_tasks,
    any_value(scores.evidence) AS evidence,
    any_value(scores.measured_nothing) AS measured_nothing,
    any_value(scores.method_version) AS method_version
FROM scores
JOIN runs USING (run_id)
GROUP BY ALL
ORDER BY runs.started_at, scores.arm, scores.measure;
