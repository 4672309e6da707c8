-- One row per run and arm: what was executed and replayed, and what it cost.
-- Replayed answers cost nothing in the run that replays them.
CREATE VIEW answer_ledger AS
WITH spent AS (
    SELECT
        run_id,
        key,
        count(DISTINCT number) AS attempts,
        sum(input_tokens) AS input_tokens,
        sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens,
        sum(cache_write_tokens) AS cache_write_tokens
    FROM attempts
    GROUP BY run_id, key
)
SELECT
    captures.run_id,
    captures.arm,
    count(*) FILTER (evidence = 'executed') AS executed,
    count(*) FILTER (evidence = 'replayed') AS replayed,
    count(*) FILTER (status = 'infra') AS infra,
    sum(answer_seconds) FILTER (evidence = 'executed') AS answer_seconds,
    sum(attempts) FILTER (evidence = 'executed') AS attempts,
    sum(input_tokens) FILTER (evidence = 'executed') AS input_tokens,
    sum(output_tokens) FILTER (evidence = 'executed') AS output_tokens,
    sum(cache_read_tokens) FILTER (evidence = 'executed') AS cache_read_tokens,
    sum(cache_write_tokens) FILTER (evidence = 'executed') AS cache_write_tokens
FROM captures
LEFT JOIN spent USING (run_id, key)
GROUP BY captures.run_id, captures.arm;
