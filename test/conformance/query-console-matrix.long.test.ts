import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { afterAll, beforeAll, describe } from "vitest";
import { type ConsoleMachine, consoleVersion, startConsoleMachine } from "./query-console/console-machine.ts";
import { memoryStatements, testMemoryLimit } from "./query-console/memory-cases.ts";
import { testRoutes } from "./query-console/route-cases.ts";

describe.skipIf(!hasEngine("postgresql", consoleVersion))("every statement that the query console refuses", () => {
  let subject: ConsoleMachine;

  beforeAll(async () => {
    subject = await startConsoleMachine();
  });
  afterAll(() => subject?.remove());

  testMemoryLimit(() => subject, memoryStatements);
  testRoutes(
    () => subject,
    ({ statements }) => statements,
  );
});
