import { writeFileSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { killAtOnce } from "../support/platform-processes.ts";
import { expectStatus } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createLifecycleUnderTest } from "./service-lifecycle/lifecycle-under-test.ts";

describe("a managed service whose engine cannot run", () => {
  const its = createLifecycleUnderTest();
  beforeAll(its.start);
  afterAll(its.remove);

  it("is in Error with a reason, and can still be deleted", async () => {
    const { service } = await its.services.createRunning("broken");
    const machine = () => its.platform.processes().machines.find(({ id }) => id === service.nodes[0]?.id);
    const control = await findInMachine(machine()?.engine ?? 0, "global/pg_control");
    writeFileSync(control, "not a control file");
    killAtOnce(machine()?.engine ?? 0);
    const failed = await waitUntil(
      "the service is in Error",
      async () => {
        const now = await its.services.get(service.id);
        return now.status === "Error" ? now : undefined;
      },
      { withinMs: 150_000, everyMs: 500, describe: () => its.services.describe(service.id) },
    );
    expect(failed.error?.message).not.toBe("");
    expect(failed.operation).toBeNull();
    expect(expectStatus(await its.post(service.id, "restart"), 409).json.code).toBe("wrong_state");
    await its.services.delete(service.id);
  });
});

/** Path by which this process reaches a file of the engine's data directory, inside the machine's mounts. */
async function findInMachine(engine: number, file: string): Promise<string> {
  const inside = await readlink(`/proc/${engine}/cwd`);
  return `/proc/${engine}/root${inside}/${file}`;
}
