import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkout } from "./set-up.js";
import { oneLine, runSuites, skippedFaults } from "./suites.js";

/** Test files, run by the real vitest; each records that it ran in a file beside it. */
const planted = {
  "green.test.js": `
    test("holds", () => {});
    test["skip"]("does not run", () => {});
    afterAll(() => saveLogs(import.meta.dirname + "/installation"));`,
  "flaky.test.js": `
    describe("a group", () => {
      test("holds from the second time on", () => expect(runs()).toBeGreaterThan(1));
      test("holds always", () => {});
    });`,
  "red.test.js": `
    test("never holds", () => expect(1).toBe(2));
    test("holds", () => {});
    afterAll(() => saveLogs(import.meta.dirname + "/installation"));`,
  "hook.test.js": `beforeAll(() => { if (runs() < 3) throw new Error("not yet"); }); test("has a hook", () => {});`,
  "stray.test.js": `
    test("leaves a rejection behind", async () => {
      if (runs() > 1) return;
      void Promise.reject(new Error("nobody waits for it"));
      // Node reports it before the next turn; a listener here would have vitest ignore it.
      await new Promise((resolve) => setImmediate(resolve));
    });`,
  "dies.test.js": `test("ends the worker", () => { if (runs() === 1) process.kill(process.pid, "SIGKILL"); });`,
  "skipped.test.js": `
    for (const isFault of [true, true, false])
      reportSkipped({ tests: isFault ? "this file" : "others", reason: "no image\\nhas it", isFault });
    describe.skip("a group", () => test("does not run", () => {}));
    test("holds", () => {});`,
  "known.test.js": `test("is known to fail", () => expect(1).toBe(2)); test("holds", () => {});`,
};

const preamble = (name) => `
import { appendFileSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { saveLogs } from "${checkout}/testing/src/platform/platform-logs.ts";
import { reportSkipped } from "${checkout}/testing/src/platform/test-reports.ts";
appendFileSync(import.meta.dirname + "/${name}.runs", "x");
const runs = () => readFileSync(import.meta.dirname + "/${name}.runs", "utf8").length;
`;

let root;
let answer;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "holdfast-suites-"));
  symlinkSync(join(checkout, "node_modules"), join(root, "node_modules"));
  writeFileSync(join(root, "vitest.config.js"), "export default { test: { include: ['**/*.test.js'] } };");
  for (const [name, text] of Object.entries(planted)) {
    const file = join(root, "planted", name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, preamble(name) + text);
  }
  const log = join(root, "planted", "installation", "log", "controller.log");
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, "a line\n");
  const isQuarantined = (path, name) => path === "planted/known.test.js" && name === "is known to fail";
  const env = { ...process.env, VITEST: undefined, VITEST_WORKER_ID: undefined, VITEST_POOL_ID: undefined };
  const suites = [{ name: "planted", files: Object.keys(planted).map((name) => `planted/${name}`), workers: 2 }];
  answer = await runSuites(suites, process.execPath, env, { root, isQuarantined });
});
afterAll(() => {
  rmSync(root, { recursive: true, force: true });
  rmSync(answer.logs, { recursive: true, force: true });
});

const about = (lines, file) => lines.filter((line) => line.startsWith(`planted/${file}.test.js`));

test("a test that fails three times is red, and printed in full", () => {
  expect(about(answer.failures, "red")).toEqual([expect.stringMatching(/^planted\/red\.test\.js > never holds\n/)]);
  expect(about(answer.failures, "red")[0]).toContain("expected 1 to be 2");
  expect(answer.failures).toHaveLength(1);
});

test("the logs of an installation of a red file are kept, and those of green files are not", () => {
  expect(readdirSync(answer.logs)).toEqual(["planted_red.test.js"]);
  const copy = join(answer.logs, "planted_red.test.js", "installation", "log_controller.log");
  expect(readFileSync(copy, "utf8")).toBe("a line\n");
});

test("a file that is green when it runs alone counts as passed, and is reported as flaky", () => {
  const [line] = about(answer.flaky, "flaky");
  expect(line).toMatch(/^planted\/flaky\.test\.js > a group > holds from the second time on: .*expected 1 to be/);
  expect(about(answer.flaky, "hook")).toEqual([expect.stringContaining("not yet")]);
});

test("an error outside of every test, and a worker that dies, make their file run again", () => {
  expect(about(answer.flaky, "stray")).toEqual([expect.stringContaining("nobody waits for it")]);
  expect(about(answer.flaky, "dies")).toHaveLength(1);
});

test("a test in quarantine runs once, is reported, and fails nothing", () => {
  expect(answer.quarantined).toEqual([expect.stringMatching(/^planted\/known\.test\.js > is known to fail: /)]);
  expect(about(answer.failures, "known")).toEqual([]);
});

test("each test counts once, as its last run went", () => {
  // Of green, flaky, red, hook, stray, dies, skipped and known.
  expect(answer.passed).toBe(1 + 2 + 1 + 1 + 1 + 1 + 1 + 1);
});

test("tests that a host cannot run are reported once, and fail continuous integration alone", () => {
  const reason = "no image\nhas it";
  expect(answer.skipped.toSorted((a, b) => (a.tests < b.tests ? -1 : 1))).toEqual([
    { tests: "others", reason, isFault: false },
    { tests: "this file", reason, isFault: true },
  ]);
  expect([{}, { CI: "false" }, { CI: "true" }].map((env) => skippedFaults(answer.skipped, env))).toEqual([0, 0, 1]);
  expect(oneLine(reason)).toBe("no image has it");
});
