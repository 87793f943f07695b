import { afterAll, beforeAll, describe, it } from "vitest";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { batchesOf, type End, extremesOf } from "./parameter-walk/extremes.ts";
import { createWalkedService, printValues, type WalkedService } from "./parameter-walk/walked-service.ts";

const longMs = 450_000;
/** Number of parameters that are set together under one backup. */
const atOnce = 12;

/** Parameters of the log and of scripts, which have tests of their own. */
const testedElsewhere = [/^busy-reply-threshold$/, /^auto-aof-/, /^appendfsync$/, /^no-appendfsync-on-rewrite$/];

describe("each parameter of a Valkey, at its least and greatest value", () => {
  let platform: Platform;
  let valkey: WalkedService;

  beforeAll(async () => {
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
    const services = createServices(platform);
    const body = { allowed_cidrs: ["127.0.0.0/8"], database_type: "valkey" };
    valkey = createWalkedService(platform, services, await services.createRunning("walk", body));
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  async function walk(end: End): Promise<void> {
    const extremes = extremesOf("valkey", "8.1", end, ({ name, needsRestart }) => {
      return !needsRestart && !testedElsewhere.some((pattern) => pattern.test(name));
    });
    for (const batch of batchesOf(extremes, atOnce)) {
      const together: Record<string, string> = {};
      for (const extreme of batch) {
        const value = await valkey.set(extreme);
        if (value === undefined) continue;
        together[extreme.name] = value;
        await valkey.applied({ [extreme.name]: value });
        await valkey.runs(printValues({ [extreme.name]: value }));
        await valkey.reset([extreme.name]);
      }
      const under = printValues(together);
      await valkey.setAll(together);
      await valkey.applied(together);
      await valkey.backedUp(under);
      await valkey.runs(under);
      await valkey.reset(Object.keys(together));
      await valkey.runs("the defaults");
    }
  }

  it("leaves a Valkey healthy, backed up and changeable at the least", () => walk("least"), longMs);
  it("leaves a Valkey healthy, backed up and changeable at the greatest", () => walk("greatest"), longMs);
});
