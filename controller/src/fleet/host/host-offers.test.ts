import { expect, it } from "vitest";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { HostObject } from "./host.ts";
import { catalogOf, imagesOf } from "./host-offers.ts";

const of = (hosts: HostObject[]) => ({ values: () => hosts.map((object) => ({ object, modRevision: 1n })).values() });

it("offers the zones of hosts that are not destroyed, the own host's zone first", () => {
  const hosts = [readyHost("a", { zone: "b-1" }), readyHost("b", { zone: "a-1", cordoned: true }), readyHost("c")];
  const catalog = catalogOf(defaultCatalog, "local", of(hosts));
  expect(catalog.zones).toEqual([
    { zone: "local", title: "This machine" },
    { zone: "a-1", title: "a-1" },
    { zone: "b-1", title: "b-1" },
  ]);
  hosts.splice(1, 2, readyHost("d", { zone: "c-1", destroyedAt: 1 }));
  expect(catalog.zones.map(({ zone }) => zone)).toEqual(["b-1"]);
  expect(catalog.plans).toBe(defaultCatalog.plans);
});

it("offers an engine version that at least one host has", () => {
  const missing = { engine: "postgresql", version: "17", available: false, reason: "no image" };
  const valkey = { engine: "valkey", version: "8", available: true };
  expect(imagesOf([missing, valkey], of([]))).toEqual([missing, valkey]);
  expect(imagesOf([missing], of([readyHost("a")]))).toMatchObject([{ version: "17", available: true }]);
  expect(imagesOf([missing], of([readyHost("a", { destroyedAt: 1 })]))).toEqual([missing]);
});
