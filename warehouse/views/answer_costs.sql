-- One row per answer: its attempts, its tokens by kind, and what it cost.
-- Priced with the snapshot that its run was started with; null where a model or a kind that was used
-- has no price there, and where no attempt said what it used. `silent_attempts` said nothing: beside
-- others that did, the cost is at least this. `cost` is charged to this run: 0 for replayed answers, whose `answer_cost` is
-- what they took when they were executed.
CREATE VIEW answer_costs AS
WITH snapshots AS (
    SELECT
        run_id,
        manifest ->> '$.config.prices.snapshot.currency' AS currency,
        manifest ->> '$.config.prices.snapshot.date' AS prices_date,
        manifest ->> '$.config.prices.digest' AS prices_digest,
        try_cast(
            manifest -> '$.config.prices.snapshot.models' AS MAP(VARCHAR, JSON)
        ) AS models
    FROM runs
),
counted AS (
    SELECT
        attempts.*,
        coalesce(input_tokens, 0) AS used_input,
        coalesce(output_tokens, 0) AS used_output,
        coalesce(cache_read_tokens, 0) AS used_cache_read,
        coalesce(cache_write_tokens, 0) AS used_cache_write,
        coalesce(
            input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
        ) IS NULL AS is_silent,
        snapshots.models IS NOT NULL AS has_prices,
        snapshots.models[attempts.model] AS price
    FROM attempts
    LEFT JOIN snapshots USING (run_id)
),
priced AS (
    SELECT
        *,
        CASE WHEN NOT has_prices THEN NULL ELSE (
            CASE used_input WHEN 0 THEN 0 ELSE used_input * (price ->> 'input')::DOUBLE END
            + CASE used_output WHEN 0 THEN 0 ELSE used_output * (price ->> 'output')::DOUBLE END
            + CASE used_cache_read
                WHEN 0 THEN 0 ELSE used_cache_read * (price ->> 'cache_read')::DOUBLE END
            + CASE used_cache_write
                WHEN 0 THEN 0 ELSE used_cache_write * (price ->> 'cache_write')::DOUBLE END
        ) / 1e6 END AS attempt_cost
    FROM counted
),
spent AS (
    SELECT
        run_id,
        key,
        count(DISTINCT number) AS attempts,
        count(DISTINCT number) FILTER (is_silent) AS silent_attempts,
        sum(input_tokens) AS input_tokens,
        sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens,
        sum(cache_write_tokens) AS cache_write_tokens,
        CASE
            WHEN count(attempt_cost) = count(*) AND NOT bool_and(is_silent) THEN sum(attempt_cost)
        END AS answer_cost
    FROM priced
    GROUP BY run_id, key
)
SELECT
    captures.run_id,
    captures.task_id,
    captures.arm,
    captures.role,
    captures.trial,
    captures.evidence,
    captures.status,
    captures.answer_seconds,
    spent.attempts,
    spent.silent_attempts,
    spent.input_tokens,
    spent.output_tokens,
    spent.cache_read_tokens,
    spent.cache_write_tokens,
    CASE captures.evidence WHEN 'replayed' THEN 0 ELSE spent.answer_cost END AS cost,
    spent.answer_cost,
    snapshots.currency,
    snapshots.prices_date,
    snapshots.prices_digest
FROM captures
LEFT JOIN spent USING (run_id, key)
LEFT JOIN snapshots USING (run_id);
