-- One row per arm, measure and task whose score differs between two runs of one panel.
-- Use: SELECT * FROM flips WHERE run_a = '…' AND run_b = '…' AND measure = 'hit@5';
CREATE VIEW flips AS
SELECT
    a.run_id AS run_a,
    b.run_id AS run_b,
    a.arm,
    a.measure,
    a.task_id,
    a.value AS value_a,
    b.value AS value_b,
    sign(b.value - a.value)::INTEGER AS direction
FROM scores AS a
JOIN scores AS b
    ON a.panel_digest = b.panel_digest
    AND a.arm = b.arm
    AND a.measure = b.measure
    AND a.task_id = b.task_id
    AND a.run_id <> b.run_id
WHERE abs(a.value - b.value) > 1e-9;
