import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { expect, test } from "vitest";
import { newMetadata } from "#kernel/store/resource.ts";
import type { AppObject, DomainSpec } from "../app/app.ts";
import { appRoutes } from "./app-routes.ts";

const domain = (name: string, verifiedAt: number | null): DomainSpec => ({
  id: name,
  name,
  token: "t",
  createdAt: 1,
  verifiedAt,
});

function app(id: string, domains: readonly DomainSpec[], servingId: string | null = "d"): { object: AppObject } {
  const hosting = {
    state: "Running",
    since: 1,
    operationId: null,
    nodeIds: [id],
    readyIds: servingId === null ? [] : [id],
    isPublished: true,
    servingId,
    failedId: null,
    delivery: null,
    error: null,
    unhealthySince: null,
  } as const;
  const spec = {
    zone: "z",
    planName: "p",
    storageSizeGb: 10,
    storageTier: "t",
    replicas: 1,
    deploymentId: "d",
    deploymentNumber: 1,
  };
  const metadata = newMetadata(id, 1, { name: id, organizationId: "o" });
  return {
    object: { metadata, spec: { homeUrl: null, attachments: [], domains, hosting: spec }, status: { hosting } },
  };
}

function withAddress({ object }: { readonly object: AppObject }): { object: AppObject } {
  const { hosting } = object.spec;
  return {
    object: {
      ...object,
      spec: { ...object.spec, ...(hosting && { hosting: { ...hosting, floatingIp: "192.0.2.7" } }) },
    },
  };
}

const machine = (id: string) => runningMachine(id, { owner: { kind: "app", id }, hostId: "here" }, "10.0.0.1");

test("a route has the app's name and its verified domains, each of which one app has", () => {
  const apps = [
    app("one", [domain("a.example", 5), domain("b.example", null), domain("login.example", 5)]),
    app("two", [domain("a.example", 4), domain("c.example", 9)]),
    app("new", [domain("d.example", 1)], null),
  ];
  const routes = appRoutes(
    apps,
    machine,
    "holdfast.test",
    (_, name) => name === "login.example",
    () => undefined,
    (_, domains) => domains.map((token) => ({ token, keyAuthorization: `${token}.thumbprint` })),
  );
  expect(routes.map(({ challenges }) => challenges.map(({ token }) => token))).toEqual([
    [],
    ["c.example", "a.example"],
  ]);
  expect(routes.map(({ appId, hosts }) => [appId, hosts])).toEqual([
    ["one", ["one-one.apps.holdfast.test"]],
    ["two", ["two-two.apps.holdfast.test", "c.example", "a.example"]],
  ]);
  expect(
    appRoutes(
      [withAddress(app("one", []))],
      machine,
      "holdfast.test",
      () => false,
      () => undefined,
      () => [],
    )[0]?.hosts,
  ).toEqual(["one-one.apps.holdfast.test", "192.0.2.7"]);
  expect(routes[0]?.nodes).toEqual(["10.0.0.1:8080"]);
});
