import { expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ObservedNode } from "../reconcile/observed-service.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import { allNamesOf, bucketHostOf, hostnameOf, namesOf, nodeHostnameOf, serverNamesOf } from "./service-names.ts";

const longest = "a".repeat(40);
const hostname = hostnameOf(longest, "abcdefgh", "local", "example.test");
const node = { id: "n", role: "primary", hostname: nodeHostnameOf(hostname, 1), zone: "local" } as const;
const service = runningService({}, { hostname, nodes: [node] }, { primaryNodeId: "n" });
function observed(address: string, publicAddress: string): ObservedNode[] {
  const created = runningMachine("n", {}, address);
  const machine = { ...created, status: { ...created.status, publicAddress } };
  return [
    {
      node,
      machine,
      connected: true,
      instance: undefined,
      stoppedForDrain: false,
      isCurrent: true,
      silentHost: undefined,
    },
  ];
}

test("each name resolves to the public address, and its private form to the private one", () => {
  const names = new Map(namesOf(service, observed("10.77.0.2", "203.0.113.17")).map((name) => [name.name, name]));
  expect([...names.keys()].sort()).toEqual(allNamesOf(service).sort());
  for (const [name, { addresses }] of names)
    expect(addresses).toEqual([name.includes(".private.") ? "10.77.0.2" : "203.0.113.17"]);
  for (const name of serverNamesOf(service, node)) expect(names.has(name)).toBe(true);
});

test("the bucket of a files service has a name below each of the service, in DNS and in the certificate", () => {
  const files = { ...service, spec: { ...service.spec, databaseType: "files", bucketHost: true as const } };
  const names = namesOf(files, observed("10.77.0.2", "203.0.113.17"));
  const addresses = { [hostname]: "203.0.113.17", [privateNameOf(hostname)]: "10.77.0.2" };
  for (const [host, address] of Object.entries(addresses)) {
    const name = `${hostname.split(".")[0]}.${host}`;
    expect(names.find((each) => each.name === name)?.addresses).toEqual([address]);
    expect(serverNamesOf(files, node)).toContain(name);
    expect(allNamesOf(service)).not.toContain(name);
  }
  for (const { name } of names) expect(allNamesOf(files)).toContain(name);
});

test("a deletion also removes the private name of the bucket that earlier releases published", () => {
  const files = { ...service, spec: { ...service.spec, databaseType: "files", bucketHost: true as const } };
  expect(allNamesOf(files)).toContain(privateNameOf(bucketHostOf(hostname)));
});

test("there is no name of a machine before it is created", () => {
  expect(namesOf(service, observed("", ""))).toEqual([]);
});

test("no label of any name is longer than 63 characters, and none of a private name is another service's", () => {
  for (const name of allNamesOf(service)) for (const label of name.split(".")) expect(label.length).toBeLessThan(64);
  // Names of any service have the same number of labels.
  const hostile = hostnameOf("private", "abcdefgh", "local", "example.test");
  expect(hostile.split(".").length).toBe(hostname.split(".").length);
  expect(allNamesOf(service)).toContain(hostname.replace(".local.", ".private.local."));
});
