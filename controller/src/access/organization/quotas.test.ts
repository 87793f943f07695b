import { systemClock } from "@holdfast/common/clock.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { type Organization, organizationKind } from "./organization.ts";
import { createQuotas } from "./quotas.ts";

type Disk = Resource<{ readonly gb: number }, object>;

const quota = { name: "diskGb", label: "GB of disks", limit: 10, amountOf: ({ spec }: Disk) => spec.gb };
const bucketKind = defineKind<Disk>("bucket", { quotas: [quota] });
const volumeKind = defineKind<Disk>("volume", { quotas: [quota] });

let fixture: TestStore;
beforeAll(async () => {
  fixture = await startTestStore();
});
afterAll(() => fixture?.close());

test("kinds of objects whose quotas have one name share its limit", async () => {
  const { set, organizations } = fixture.collections;
  const [buckets, volumes] = [set.open(bucketKind), set.open(volumeKind)];
  await Promise.all([buckets.ready, volumes.ready]);
  const quotas = createQuotas(set, systemClock);
  const id = uuidv7();
  const first = fixture.begin();
  const metadata = newMetadata(id, 0, { name: "o", organizationId: id });
  first.create(organizationKind, { ...partial<Organization>({ spec: { quota: {} }, status: {} }), metadata });
  await organizations.untilRevision(await first.commit(), 5_000);

  async function add(kind: typeof bucketKind, gb: number): Promise<void> {
    const unit = fixture.begin();
    unit.create(kind, { metadata: newMetadata(uuidv7(), 0, { organizationId: id }), spec: { gb }, status: {} });
    await quotas.claim(unit, id, { diskGb: gb });
    await organizations.untilRevision(await unit.commit(), 5_000);
  }
  await add(bucketKind, 4);
  await add(volumeKind, 5);
  expect(quotas.usage(id)["diskGb"]).toBe(9);
  expect(quotas.all().filter(({ name }) => name === "diskGb")).toHaveLength(1);
  for (const kind of [bucketKind, volumeKind])
    await expect(add(kind, 2)).rejects.toThrow("The organization has 9 of 10 GB of disks; 2 more is too many.");
  await add(volumeKind, 1);
  expect(quotas.usage(id)["diskGb"]).toBe(10);
});
