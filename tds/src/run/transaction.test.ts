import { expect, test } from "vitest";
import type { Backend } from "./backend.ts";
import { endsTransaction } from "./errors.ts";
import { SqlError } from "./sql-error.ts";
import { Transaction } from "./transaction.ts";

test("a BEGIN past the nesting limit is no deadlock, so that drivers do not retry it", async () => {
  const scripts: string[] = [];
  const backend = { script: async (sql: string) => void scripts.push(sql), hasFailed: false } as Partial<Backend>;
  const transaction = new Transaction(backend as Backend);
  for (let level = 0; level < 32_767; level += 1) await transaction.begin(undefined);
  const failure = await transaction.begin(undefined).catch((error: unknown) => error);
  expect(failure).toMatchObject({ number: 50_001 });
  expect(endsTransaction(failure as SqlError)).toBe(false);
  expect(transaction.count).toBe(32_767);
  expect(scripts).toEqual(["BEGIN ISOLATION LEVEL READ COMMITTED"]);
});
