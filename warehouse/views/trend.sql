-- One row per panel, commit of the product, arm and measure: its newest usable run, an executed one
-- where there is any. `arm_config` tells apart two configurations under one name.
CREATE VIEW trend AS
SELECT
    scores.name,
    scores.panel_digest,
    scores.product_commit,
    scores.product_tree,
    scores.arm,
    scores.role,
    scores.measure,
    scores.run_id,
    scores.started_at,
    scores.value,
    scores.total,
    scores.n,
    scores.evidence,
    scores.measured_nothing,
    asked.degraded,
    asked.environment_digest,
    asked.arm_config
FROM arm_scores AS scores
JOIN arm_runs AS asked USING (run_id, arm)
JOIN runs USING (run_id)
WHERE
    runs.status = 'finished'
    AND runs.evidence NOT IN ('invalid', 'incomplete')
    AND runs.product_commit IS NOT NULL
    AND NOT runs.is_dirty
QUALIFY row_number() OVER (
    PARTITION BY scores.panel_digest, scores.product_commit, scores.arm, scores.measure
    ORDER BY scores.evidence = 'executed' DESC, scores.started_at DESC, scores.run_id DESC
) = 1;
