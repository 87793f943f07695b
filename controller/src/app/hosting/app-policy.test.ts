import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { expect, test } from "vitest";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { newMetadata, type Stored } from "#kernel/store/resource.ts";
import type { AppObject, AttachmentSpec } from "../app/app.ts";
import { createAppPolicy } from "./app-policy.ts";

function collectionOf<T extends { readonly metadata: { readonly id: string } }>(objects: readonly T[]) {
  const stored = objects.map((object): Stored<T> => ({ object, modRevision: 1n }));
  return {
    get: (id: string) => stored.find(({ object }) => object.metadata.id === id),
    values: () => stored.values(),
    by: () => stored,
    subscribe: () => ({ close() {} }),
  };
}

const machine = (id: string, app: string, address: string): MachineObject => ({
  ...runningMachine(id, { owner: { kind: "app", id: app }, hostId: "here" }, address),
  metadata: newMetadata(id, 1, { name: id, organizationId: "o" }),
});

function app(id: string, nodeIds: readonly string[], attachments: readonly AttachmentSpec[]): AppObject {
  const hosting = {
    state: "Running",
    since: 1,
    operationId: null,
    nodeIds,
    readyIds: nodeIds,
    isPublished: true,
    servingId: null,
    failedId: null,
    delivery: null,
    error: null,
    unhealthySince: null,
  } as const;
  return {
    metadata: newMetadata(id, 1, { name: id, organizationId: "o" }),
    spec: { homeUrl: null, attachments, domains: [] },
    status: { hosting },
  };
}

test("the machines of an app admit ingresses, and those of apps to which it is attached; they reach the API", () => {
  const attachment = { id: "x", serviceId: "shop", databaseName: "", app: true } as const;
  const apps = collectionOf([
    app("shop", ["s"], []),
    app("caller", ["c", "d"], [attachment]),
    app("other", ["o"], [{ id: "y", serviceId: "shop", databaseName: "defaultdb" }]),
  ]);
  const machines = collectionOf([
    machine("s", "shop", "10.0.0.1"),
    machine("c", "caller", "10.0.0.2"),
    machine("d", "caller", ""),
    machine("o", "other", "10.0.0.3"),
  ]);
  const rules = createAppPolicy(apps, machines, {
    ingresses: ["192.0.2.1/32"],
    api: { addresses: ["10.0.0.9"], port: 8_443 },
  }).rulesOn("here");
  expect(rules.map(({ to, port, from }) => [to, port, from])).toEqual([
    ["10.0.0.1", 8_080, ["192.0.2.1/32", "10.0.0.2/32"]],
    ["10.0.0.9", 8_443, ["10.0.0.1/32"]],
    ["10.0.0.2", 8_080, ["192.0.2.1/32"]],
    ["10.0.0.9", 8_443, ["10.0.0.2/32"]],
    ["10.0.0.3", 8_080, ["192.0.2.1/32"]],
    ["10.0.0.9", 8_443, ["10.0.0.3/32"]],
  ]);
});
