-- Executed answers whose keys are equal and whose answers differ: noise, counted as such.
CREATE VIEW noise AS
SELECT
    key,
    arm,
    task_id,
    count(*) AS executions,
    count(DISTINCT raw) AS different_answers
FROM captures
WHERE evidence = 'executed' AND status <> 'infra'
GROUP BY key, arm, task_id
HAVING count(DISTINCT raw) > 1;
