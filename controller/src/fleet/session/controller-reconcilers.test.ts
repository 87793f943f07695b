import { expect, test } from "vitest";
import { listControllerReconcilers, reconcilerMessages } from "./controller-reconcilers.ts";

const local = {
  reconciler: "host",
  queued: 1,
  running: 2,
  failing: 0,
  failingKeys: [],
  lastRunAt: undefined,
  lastFailure: undefined,
};

test("a controller that does not respond, or has no address yet, is named and hides no other one", async () => {
  const controller = (id: string, address: string) => ({ id, address, startedAt: 0, draining: false });
  const controllerRegistry = {
    id: "c-1",
    controllers: () => [
      controller("c-1", "own:1"),
      controller("c-2", "two:1"),
      controller("c-3", "three:1"),
      controller("c-4", ""),
    ],
  };
  const controllerCalls = {
    // A controller of a release without this call.
    listReconcilers: async (address: string) => {
      if (address !== "two:1") throw new Error("UNIMPLEMENTED");
      return reconcilerMessages([local], "c-2", false);
    },
  };
  const found = await listControllerReconcilers(
    { controllerRegistry, controllerCalls },
    false,
    new AbortController().signal,
  );
  expect(found.unreachable).toEqual(["c-3", "c-4"]);
  expect(found.reconcilers).toMatchObject([{ reconciler: "host", controllerId: "c-2", queued: 1, running: 2 }]);
});

test("the messages have only reconcilers with failing keys when requested", () => {
  const failing = { ...local, reconciler: "machine", failing: 1 };
  expect(reconcilerMessages([local, failing], "c-1", true).map(({ reconciler }) => reconciler)).toEqual(["machine"]);
  expect(reconcilerMessages([local, failing], "c-1", false)).toHaveLength(2);
});
