import { expect, test } from "vitest";
import type { EngineDriver, Instance } from "../engines/engine-driver.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { createEngineProcess } from "./engine-process.ts";

test.each([
  ["let go before the engine is told to stop", false, ["letGo", "beforeStop", "stop 1"]],
  ["nothing that one waits for which is ended at once", true, ["letGo", "stop 0", "beforeStop", "stop 1"]],
])("sessions that work on queues are %s", async (_, atOnce, orders) => {
  const told: string[] = [];
  const keeper = {
    component: () => ({ name: "engine", state: "running", starts: 1 }),
    order: async ({ op, graceMs }: { op: string; graceMs: number }) => void told.push(`${op} ${graceMs}`),
    subscribe: () => ({ close: () => undefined }),
  } as unknown as KeeperClient;
  const driver = {
    stop: { signal: "SIGINT", graceMs: 1 },
    queues: { letGo: () => void told.push("letGo") },
  } as unknown as EngineDriver;
  const beforeStop = async () => void told.push("beforeStop");
  const engine = createEngineProcess({ keeper, logPath: "/nowhere", beforeStop });
  await engine.stop(driver, {} as Instance, { atOnce });
  expect(told).toEqual(orders);
});
