import { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import { ManagedServiceService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { expect, test } from "vitest";
import { createGate } from "./gate.ts";
import { describeMethods } from "./method.ts";

const presented = {
  authorization: "x",
  organization: undefined,
  fetchSite: undefined,
  origin: undefined,
  authority: "localhost",
  source: "192.0.2.1",
  requestId: "r",
  subject: undefined,
};

const methods = describeMethods(
  [ManagedServiceService, CatalogService].map((service) => ({
    service,
    handlers: Object.fromEntries(service.methods.map(({ localName }) => [localName, async () => ({})])),
    checks: {},
  })),
);

test("a process that may miss changes reads no credential, serves no call and continues no stream", async () => {
  let isCurrent = false;
  const gate = createGate({
    authenticator: {
      authenticate: async () => {
        if (!isCurrent) expect.unreachable();
        return { kind: "api_key", id: "k", name: "k", organizationId: "o", scopes: new Set(["services:*"]) };
      },
    },
    reportRefusal: () => undefined,
    baseUrl: "https://localhost",
    requireCurrent: () => (isCurrent ? undefined : Promise.reject(new HoldfastError("STORE_UNAVAILABLE", "Behind."))),
    clock: systemClock,
  });
  const [read] = methods.filter(({ description }) => description.name === "GetManagedService");
  if (read === undefined) throw new Error("no GetManagedService");
  const admit = () => gate.admit(read, presented, () => undefined);
  const continueStream = () => gate.reauthorize(read, presented);
  for (const call of [admit, continueStream])
    await expect(call()).rejects.toMatchObject({ key: "STORE_UNAVAILABLE", retryAfterS: 1 });
  isCurrent = true;
  for (const call of [admit, continueStream]) expect(await call()).toMatchObject({ id: "k" });
});

test("a full store allows reads, stops and deletions, and refuses creations", async () => {
  const gate = createGate({
    authenticator: {
      authenticate: async () => ({
        kind: "api_key",
        id: "k",
        name: "k",
        organizationId: "o",
        scopes: new Set(["services:*"]),
      }),
    },
    reportRefusal: () => undefined,
    baseUrl: "https://localhost",
    admitGrowth: () => {
      throw new HoldfastError("STORE_UNAVAILABLE", "Full.");
    },
    clock: systemClock,
  });
  const outcome = async (name: string) => {
    const method = methods.find(({ description }) => description.name === name);
    if (method === undefined) throw new Error(`no ${name}`);
    return gate
      .admit(method, presented, () => undefined)
      .then(
        () => "admitted",
        (error: HoldfastError) => error.key,
      );
  };
  const names = ["GetManagedService", "StopManagedService", "DeleteManagedService", "CreateManagedService"];
  expect(await Promise.all(names.map(outcome))).toEqual(["admitted", "admitted", "admitted", "STORE_UNAVAILABLE"]);
});
