import { describe, expect, test } from "vitest";
import { observedNode, observedService } from "@holdfast/testing/controller/observed-service.ts";
import { node, runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { autoscaleDueInMs, autoscaleTargetGb } from "./autoscale-target.ts";
import { autoscaleFault, autoscaleOf, chosenAutoscale } from "./storage-autoscale.ts";

const gib = 1024 ** 3;
const now = 1_000_000;

function target(
  service: ManagedServiceObject,
  storageLevel: number,
  { diskGb = service.spec.storageSizeGb, connected = true } = {},
) {
  const instance = { storageLevel, diskBytes: BigInt(diskGb * gib) };
  return autoscaleTargetGb(service, observedService([observedNode(node, instance, { connected })]), now);
}

const growing = (
  spec: Partial<ManagedServiceObject["spec"]> = {},
  status: Partial<ManagedServiceObject["status"]> = {},
  metadata: Partial<ManagedServiceObject["metadata"]> = {},
) => runningService(metadata, { storageSizeGb: 10, storageAutoscale: { enabled: true, maxGb: 100 }, ...spec }, status);

describe("storage with autoscaling", () => {
  test.each([
    [10, 100, 13],
    [1, 100, 2],
    [90, 100, 100],
    [100, 100, undefined],
    [200, 100, undefined],
  ])("of %i GB, up to %i, grows to %s when it is low", (storageSizeGb, maxGb, expected) => {
    expect(target(growing({ storageSizeGb, storageAutoscale: { enabled: true, maxGb } }), 85)).toBe(expected);
  });

  test.each<[string, ManagedServiceObject, number, object]>([
    ["not low", growing(), 80, {}],
    ["disabled", growing({ storageAutoscale: { enabled: false, maxGb: 100 } }), 99, {}],
    ["not configured", runningService(), 99, {}],
    ["reported by no agent", growing(), 99, { connected: false }],
    ["reported before the file system has grown", growing(), 99, { diskGb: 8 }],
    ["reported without a size", growing(), 99, { diskGb: 0 }],
    ["of a service with an operation", growing({}, { operationId: "o" }), 99, {}],
    ["of a service that is stopped", growing({ power: "off" }, { state: "Stopped" }), 99, {}],
    ["of a service that is being deleted", growing({}, {}, { deletionRequestedAt: 1 }), 99, {}],
  ])("does not grow while it is %s", (_, service, level, options) => {
    expect(target(service, level, options)).toBeUndefined();
  });

  test("grows for a service that is managed by a parent", () => {
    expect(target(growing({}, {}, { managedBy: { kind: "stack", id: "s" } }), 99)).toBe(13);
  });

  test("grows for an engine that cannot start because of a full disk", () => {
    expect(target(growing({}, { state: "Error" }), 99)).toBe(13);
  });

  test.each([
    ["refused", { refused: "No room." }],
    ["rolled back", {}],
  ])("waits for a while after one that was %s", (_, more) => {
    const autoscale = { toGb: 13, at: now, ...more };
    expect(target(growing({}, { autoscale }), 99)).toBeUndefined();
    expect(autoscaleDueInMs(growing({}, { autoscale }), now)).toBe(600_000);
    expect(target(growing({}, { autoscale: { ...autoscale, at: now - 600_000 } }), 99)).toBe(13);
    // A larger size that a user chose after the refusal needs no delay.
    expect(target(growing({ storageSizeGb: 13 }, { autoscale }), 99)).toBe(17);
  });
});

test.each([
  [{ enabled: true }, "required"],
  [{ enabled: true, maxGb: 9 }, "too_small"],
  [{ enabled: true, maxGb: 10 }, undefined],
  [{ enabled: false }, undefined],
  [{ maxGb: 5 }, undefined],
  [undefined, undefined],
])("for 10 GB, the choice %j is %s", (choice, code) => {
  const storageAutoscale = chosenAutoscale({}, choice);
  const chosen = autoscaleOf({ ...(storageAutoscale && { storageAutoscale }) });
  expect(autoscaleFault(chosen, 10)?.code).toBe(code);
});

test("fields that a choice omits stay", () => {
  const before = { storageAutoscale: { enabled: true, maxGb: 50 } };
  expect(chosenAutoscale(before, { enabled: false })).toEqual({ enabled: false, maxGb: 50 });
  expect(chosenAutoscale(before, { maxGb: 60 })).toEqual({ enabled: true, maxGb: 60 });
  expect(chosenAutoscale(before, undefined)).toBe(before.storageAutoscale);
});
