import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ComputeFailure } from "../compute-failure.ts";
import { machinePaths } from "../local/machine-paths.ts";
import { launchMachine } from "./machine-launch.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-launch-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Starts a machine whose prefix replaces the launcher's work by a script, after earlier runs that logged. */
async function failureOf(script: string): Promise<ComputeFailure> {
  const paths = machinePaths(directory, join(directory, "run"));
  writeFileSync(paths.log, `${JSON.stringify({ msg: "engine ended", reason: "an earlier run" })}\nearlier words\n`);
  const launch = launchMachine({
    paths,
    isolation: "none",
    root: undefined,
    uid: null,
    grow: false,
    command: ["true"],
    env: {},
    prefix: ["sh", "-c", script],
  });
  const error = await launch.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ComputeFailure)) throw new Error(`no ComputeFailure: ${String(error)}`);
  return error;
}

const byItself = "The machine ended while it was started. It is restarted automatically.";

test.each([
  [
    "its launcher said",
    "echo mount: no such device >&2; exit 32",
    "The machine could not be started: mount: no such device",
  ],
  ["nothing, when it was killed", "kill -9 $$", byItself],
  ["nothing that a program logged", `echo '{"level":50,"msg":"keeper ends"}' >&2; exit 1`, byItself],
])("a failed start reports what %s, and nothing of earlier runs", async (_what, script, message) => {
  expect((await failureOf(script)).message).toBe(message);
});

test("JSON lines of programs are the cause, for the operator's log", async () => {
  const { cause } = await failureOf(`echo '{"level":50,"msg":"keeper ends"}' >&2; exit 1`);
  expect(String(cause)).toContain('"msg":"keeper ends"');
  expect(String(cause)).not.toContain("earlier");
});
