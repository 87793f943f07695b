import { appendFileSync } from "node:fs";

/** Tests that do not run on this host. */
export interface SkippedTests {
  /** Description of the skipped tests, such as `tests of valkey 9`. */
  readonly tests: string;
  readonly reason: string;
  /** True if every host of continuous integration is to run them: there it fails the run. */
  readonly isFault: boolean;
}

/** Reports skipped tests to the summary of `npm test`; does nothing in a run without one. */
export function reportSkipped(skipped: SkippedTests): void {
  report({ skipped });
}

/** Reports that a long hook or test makes progress to `npm test`, which ends a run without any. */
export function reportProgress(): void {
  report({ alive: true });
}

function report(line: object): void {
  const results = process.env["HOLDFAST_TEST_RESULTS"];
  if (results !== undefined) appendFileSync(results, `${JSON.stringify(line)}\n`);
}
