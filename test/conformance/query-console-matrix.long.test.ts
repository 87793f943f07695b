import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allowedStatements } from "./query-console/allowed-statements.ts";
import { attacks } from "./query-console/attacks.ts";
import { type ConsoleMachine, consoleVersion, startConsoleMachine } from "./query-console/console-machine.ts";
import { memoryStatements, testMemoryLimit } from "./query-console/memory-cases.ts";
import { testRoutes } from "./query-console/route-cases.ts";

describe.skipIf(!hasEngine("postgresql", consoleVersion))("every statement of the query console", () => {
  let subject: ConsoleMachine;

  beforeAll(async () => {
    subject = await startConsoleMachine();
  });
  afterAll(() => subject?.remove());

  test(`runs ${allowedStatements.length} allowed statements`, async () => {
    const refused: string[] = [];
    for (const sql of allowedStatements) {
      const response = await subject.execute(sql);
      if ("refusal" in response) refused.push(`${sql}: ${response.refusal.message}`);
    }
    expect(refused).toEqual([]);
  });

  test(`rejects ${attacks.length} attacks, and none leaves a trace`, { timeout: 600_000 }, async () => {
    const before = await subject.traces();
    const passed: string[] = [];
    for (const sql of attacks) if (!("refusal" in (await subject.execute(sql)))) passed.push(sql.slice(0, 200));
    expect(passed).toEqual([]);
    expect(await subject.traces()).toEqual(before);
  });

  testMemoryLimit(() => subject, memoryStatements);
  testRoutes(
    () => subject,
    ({ statements }) => statements,
  );
});
