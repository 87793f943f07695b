import { create } from "@bufbuild/protobuf";
import { ReleaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { createReleaseStates } from "./release-states.ts";

test("an agent reports no releases before it has read its slots, and then the one that serves", () => {
  let changes = 0;
  const states = createReleaseStates(() => {
    changes += 1;
  });
  expect(states.message()).toBeUndefined();
  const release = create(ReleaseSchema, { id: "r" });
  states.setSlots({ a: { release, restartCount: 0n, wasReady: true }, serving: "a" });
  states.setProgress("r", "ready");
  expect(states.message()).toMatchObject({ servingReleaseId: "r", releases: [{ id: "r", state: "ready" }] });
  expect(changes).toBe(2);
});
