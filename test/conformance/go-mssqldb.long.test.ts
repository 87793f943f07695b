import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { startTestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { describe, expect, it } from "vitest";
import { knownFailures, panicking } from "./go-mssqldb/known-failures.ts";
import { runGoTests } from "./go-mssqldb/run-tests.ts";

// The tests of go-mssqldb 1.11.2 from a checkout of it (npm run faults -- --go-mssqldb DIR), which takes Go.

const checkout = process.env["HOLDFAST_TEST_GO_MSSQLDB"];
const suiteMs = 1_800_000;

describe.skipIf(checkout === undefined)("the tests of go-mssqldb", () => {
  it(
    "pass on the front end, except for the known failures",
    async () => {
      const postgresql = await startTestPostgresql();
      const directory = await mkdtemp(join(tmpdir(), "holdfast-go-mssqldb-"));
      const tds = await startTestTds(postgresql.url);
      try {
        const certificate = join(directory, "ca.pem");
        await writeFile(certificate, tds.certificate);
        const { passed, skipped, failed } = await runGoTests(checkout ?? "", tds, certificate, Object.keys(panicking));
        console.log(JSON.stringify({ passed: passed.length, skipped: skipped.length, failed: [...failed.keys()] }));
        const unknown = [...failed].filter(([name]) => !Object.hasOwn(knownFailures, name));
        expect(unknown, "tests that fail and are not known to").toEqual([]);
        expect(
          Object.keys(knownFailures).filter((name) => passed.includes(name)),
          "known failures that pass",
        ).toEqual([]);
        expect(passed.length).toBeGreaterThanOrEqual(400);
      } finally {
        await tds.stop();
        await postgresql.stop();
        await rm(directory, { recursive: true, force: true });
      }
    },
    suiteMs,
  );
});
