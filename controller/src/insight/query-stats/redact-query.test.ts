import { beforeAll, expect, test } from "vitest";
import { loadNormalizer, redactQuery } from "./redact-query.ts";
import { withheld } from "./withheld.ts";

beforeAll(loadNormalizer);

test.each([
  ["SELECT $1, x FROM t WHERE a IN ($2, $3)", "SELECT $1, x FROM t WHERE a IN ($2, $3)"],
  ["SELECT x FROM t WHERE card = 4111111111111111 LIMIT 5", "SELECT x FROM t WHERE card = $1 LIMIT $2"],
  ["SELECT x FROM t WHERE a = 'secret' AND b = $1", "SELECT x FROM t WHERE a = $2 AND b = $1"],
  ["SELECT INTERVAL $1, date $2, a::varchar(10) FROM t", "SELECT INTERVAL $1, date $2, a::varchar(10) FROM t"],
  ["INSERT INTO t VALUES ($1, $2) ON CONFLICT DO NOTHING", "INSERT INTO t VALUES ($1, $2) ON CONFLICT DO NOTHING"],
  ["SELECT 'secret", withheld],
  ["this is no statement 'secret'", withheld],
  ["SELECT a /* secret */ FROM t", withheld],
  ["", withheld],
])("%s is redacted to %s", (text, redacted) => {
  expect(redactQuery(text)).toBe(redacted);
});
