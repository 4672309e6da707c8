-- One row per run, task and measure: every arm's score side by side as a map, and who solved it.
CREATE VIEW task_scores AS
SELECT
    run_id,
    task_id,
    measure,
    map_from_entries(list((arm, value) ORDER BY arm)) AS values_by_arm,
    list(arm ORDER BY arm) FILTER (value > 0) AS solved_by,
    count(*) AS arms
FROM scores
GROUP BY run_id, task_id, measure;
