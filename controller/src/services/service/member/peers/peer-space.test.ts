import type { Fleet } from "#fleet/fleet.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { ManagedServiceObject } from "../../managed-service.ts";
import { requireSpace } from "./peer-space.ts";

const gib = 1024 ** 3;
const leaving = { id: "n-4" } as const;

/** Four nodes with disks of 10 GB, which report these sizes of their data in GB. */
function remove(sizes: Readonly<Record<string, number>>, databaseType = "kafka", joining?: true): void {
  const nodes = ["n-1", "n-2", "n-3", "n-4"].map((id) => ({ id }));
  const service = partial<ManagedServiceObject>({ spec: { databaseType, storageSizeGb: 10, nodes } });
  const observation = (id: string) =>
    sizes[id] === undefined ? undefined : { instance: { dataBytes: BigInt(Math.round(sizes[id] * gib)) } };
  const node = service.spec.nodes.find(({ id }) => id === leaving.id);
  if (node === undefined) throw new Error("no node");
  const fleet = partial<Fleet>({ observation });
  requireSpace(service, { ...node, ...(joining === true && { joining }) }, { fleet });
}

const each = (size: number) => ({ "n-1": size, "n-2": size, "n-3": size, "n-4": size });

test("a member is removed if the others have space for its part of the data", () => {
  expect(() => remove(each(6.7))).not.toThrow();
  expect(() => remove(each(6.8))).toThrow(
    "The service has 27.2 GB of data, and the disks of the other 3 nodes have 30 GB, of which 90% may be filled.",
  );
});

test("a member that has not reported counts as the average of the others", () => {
  expect(() => remove({ "n-1": 8, "n-2": 6, "n-3": 7 })).toThrow("28.0 GB");
  expect(() => remove({ "n-1": 6, "n-2": 6, "n-3": 6 })).not.toThrow();
  expect(() => remove({})).not.toThrow();
});

test("data of an engine whose members each have all of them need no space elsewhere, and a new member has none", () => {
  expect(() => remove(each(9), "postgresql")).not.toThrow();
  expect(() => remove(each(9), "kafka", true)).not.toThrow();
});
