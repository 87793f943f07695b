import { execFile } from "node:child_process";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { describe, it } from "vitest";
import { testCheckout } from "../../../../test/support/process-machines.ts";
import { openProcessSubject } from "../../../../test/support/process-subject.ts";
import { computeConformance } from "../compute-conformance.ts";
import { detectAbilities } from "../host/host-abilities.ts";

const run = promisify(execFile);
const abilities = await detectAbilities();

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
    // The stand-in needs no engine; what counts is that the host seems to have one.
    { ...process.env, PATH: `${join(import.meta.dirname, "test-engines")}:${process.env["PATH"]}` },
  ),
);

const config = ["--configLoader", "native", "--no-cache", "--reporter", "dot"];

describe.skipIf(abilities.isolation !== "root" || process.env["HOLDFAST_AS_USER"] !== undefined)(
  "as a user who is not root",
  () => {
    it("keeps every promise", async (context) => {
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
