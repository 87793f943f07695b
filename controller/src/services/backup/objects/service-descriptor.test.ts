import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { openStream } from "@holdfast/common/sealed/sealed-stream.ts";
import { expect, test } from "vitest";
import { replicaOf } from "@holdfast/testing/controller/observed-service.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { subkey } from "#kernel/secrets/sealer.ts";
import { newArchive } from "../archive/archive.ts";
import { descriptorOf, openDescriptor, sealDescriptor } from "./service-descriptor.ts";

const masterKey = randomBytes(32);
const keyring = { current: "v1", keys: new Map([["v1", masterKey]]) };
const object = "services/service-1/descriptors/0000000001/000000000001";

test("a descriptor is stored under keys that do not change with names in code", async () => {
  const nodes = [...runningService().spec.nodes, { ...replicaOf("r", 2), failoverCandidate: 3 }];
  const service = runningService({}, { nodes });
  const archive = newArchive(service, 0, 0);
  const deleted = { at: 0, until: 1, backupId: null, retainedNodes: ["r"], service, users: [] };
  const descriptor = descriptorOf({
    organization: { id: "o", name: "o" },
    service,
    users: [],
    archive: { ...archive, status: { ...archive.status, deleted } },
    backups: [],
  });
  const sealed = await buffer(sealDescriptor(descriptor, object, keyring));
  async function* bytes() {
    yield sealed;
  }
  const format = "holdfast service descriptor 1";
  const text = await buffer(openStream(bytes(), { format, object }, () => subkey(masterKey, "service descriptor")));
  // oxlint-disable-next-line holdfast/names -- a stored key
  const stored = { spec: { nodes: [{}, { vouches: 3 }] } };
  expect(JSON.parse(text.toString("utf8"))).toMatchObject({
    service: stored,
    // oxlint-disable-next-line holdfast/names -- a stored key
    archive: { status: { deleted: { keptNodes: ["r"], service: stored } } },
  });
  expect(await openDescriptor(bytes(), object, keyring)).toEqual(descriptor);
});
