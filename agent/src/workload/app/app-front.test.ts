import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { ComponentStatus, KeeperClient, KeeperOrder } from "../../os/keeper-client.ts";
import { createAppFront, sessionsIn } from "./app-front.ts";

test("the sessions of a slot are read from the statistics by the names of their columns", () => {
  const output = `# pxname,svname,qcur,scur,smax
app,FRONTEND,,9,9
app,a,0,3,4
other,a,0,8,8
app,b,0,0,1
grpc,a,0,2,2
`;
  expect(sessionsIn(output, "a")).toBe(5);
  expect(sessionsIn(output, "b")).toBe(0);
  expect(sessionsIn("", "a")).toBe(0);
});

test.each([
  ["running", 1],
  ["stopping", 1],
  ["empty", 0],
] as const)("a stop waits for the end of a front that is %s", async (state, count) => {
  const orders: KeeperOrder[] = [];
  const keeper = partial<KeeperClient>({
    component: () => partial<ComponentStatus>({ state }),
    order: async (order: KeeperOrder) => {
      orders.push(order);
      return {};
    },
  });
  await createAppFront({ keeper, stateDir: "/", runDir: "/", softwareRoot: "/" }).stop(30_000);
  expect(orders).toHaveLength(count);
});
