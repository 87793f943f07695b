import { execFile } from "node:child_process";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { describe, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { startTestMachines, testCheckout } from "@holdfast/testing/machines/process-machines.ts";
import { openProcessSubject } from "@holdfast/testing/machines/process-subject.ts";
import { computeConformance } from "../compute-conformance.ts";
import { detectAbilities } from "../local/host-abilities.ts";

const run = promisify(execFile);
const abilities = await detectAbilities();
const signal = new AbortController().signal;

computeConformance(
  `process, in namespaces (${abilities.isolation})`,
  () => openProcessSubject(abilities),
  abilities.isolation === "none" ? abilities.reason : undefined,
);
computeConformance(
  "process, data in directories",
  () => openProcessSubject({ ...abilities, loop: false }),
  abilities.loop ? undefined : "that is what ran above",
);
computeConformance("process, without namespaces", () =>
  openProcessSubject(
    { isolation: "none", loop: false, groups: { version: "none", reason: "" }, reason: "the test does without" },
    // The stand-in needs no engine; only its path is looked up.
    { ...process.env, PATH: `${join(import.meta.dirname, "test-engines")}:${process.env["PATH"]}` },
  ),
);

it("refuses a machine without a free public address, before anything is created", async () => {
  const machines = await startTestMachines({ publicBlock: "203.0.113.16/30" });
  const { provider } = machines;
  try {
    const made = [];
    for (const spec of [testMachineSpec(), testMachineSpec()]) made.push(await provider.create(spec, signal));
    const third = testMachineSpec();
    const reason = "The host has no free public address for a machine: all 2 of 203.0.113.16/30 are taken.";
    expect(await provider.admit(third, signal)).toEqual({ admitted: false, reason });
    await expect(provider.create(third, signal)).rejects.toThrow(reason);
    expect(await provider.get(third.id, signal)).toBeUndefined();
    await provider.destroy(made[0]?.id ?? "", signal);
    expect((await provider.create(third, signal)).publicAddress).toBe(made[0]?.publicAddress);
  } finally {
    await machines.close();
  }
});

const config = ["--configLoader", "native", "--no-cache", "--reporter", "dot"];

describe.skipIf(abilities.isolation !== "root" || process.env["HOLDFAST_AS_USER"] !== undefined)(
  "as a user who is not root",
  () => {
    it("passes the conformance suite", async (context) => {
      const uid = "65531";
      const vitest = join(testCheckout, "node_modules", "vitest", "vitest.mjs");
      const asUser = ["--reuid", uid, "--regid", uid, "--clear-groups"];
      try {
        await run("setpriv", [...asUser, "test", "-r", vitest, "-a", "-x", process.execPath]);
      } catch {
        context.skip("the checkout or node is in a directory that other users may not enter");
      }
      const home = await mkdtemp(join(tmpdir(), "holdfast-user-"));
      await chown(home, Number(uid), Number(uid));
      const env = {
        ...process.env,
        HOME: home,
        TMPDIR: home,
        HOLDFAST_CACHE: cacheDirectory(process.env),
        HOLDFAST_AS_USER: uid,
      };
      try {
        await run("setpriv", [...asUser, process.execPath, vitest, "run", ...config, import.meta.filename], {
          cwd: testCheckout,
          env,
        });
      } catch (error) {
        throw new Error(error instanceof Error && "stdout" in error ? String(error.stdout) : String(error));
      } finally {
        await rm(home, { recursive: true, force: true });
      }
    });
  },
);
