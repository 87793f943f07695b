import { expect, test } from "vitest";
import { replicaOf } from "@holdfast/testing/controller/observed-service.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { archiveKind } from "../backup/archive/archive.ts";
import { managedServiceKind } from "./managed-service.ts";
import { partial } from "@holdfast/testing/partial.ts";

const replica = {
  ...replicaOf("r", 2),
  failoverCandidate: 3,
  pinned: { image: "old" },
  restarts: { delivered: 1, desired: 2 },
};
const service = runningService(
  {},
  {
    nodes: [...runningService().spec.nodes, { ...replica, replaces: { nodeId: "n", switchoverRequested: true } }],
    canary: { operationId: "o", generation: 2, writesFenced: true, dataRolledBack: true },
  },
  { recoveryPointStale: true, warnings: { "node.unhealthy r": { since: 1, announced: false } } },
);
/* oxlint-disable holdfast/names -- stored keys */
const stored = {
  spec: {
    nodes: [
      {},
      { vouches: 3, keeps: { image: "old" }, restarts: { told: 1, wanted: 2 }, replaces: { nodeId: "n", asked: true } },
    ],
    trial: { sealed: true, dataBack: true },
  },
  status: { restorableStale: true, warnings: { "node.unhealthy r": { since: 1, told: false } } },
};
/* oxlint-enable holdfast/names */

test("a service is stored under keys that do not change with names in code", () => {
  const text = managedServiceKind.format(service);
  expect(JSON.parse(text)).toMatchObject(stored);
  expect(managedServiceKind.parse(text)).toEqual(service);
});

test("the archive of a deleted service stores it under the same keys", () => {
  const archive = partial<ReturnType<typeof archiveKind.parse>>({ spec: {}, status: { deleted: { service } } });
  const text = archiveKind.format(archive);
  expect(JSON.parse(text)).toMatchObject({ status: { deleted: { service: stored } } });
  expect(archiveKind.parse(text)).toEqual(archive);
});
