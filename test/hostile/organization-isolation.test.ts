import { randomUUID } from "node:crypto";
import { get } from "node:https";
import { type DescMethod, fromJson, getOption, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";
import type { GrpcChannel } from "@holdfast/testing/api/grpc-calls.ts";
import { restCallOf } from "@holdfast/testing/api/rest-call.ts";
import type { Rest } from "@holdfast/testing/api/rest.ts";
import { caseOf, nameOf, requestOf } from "@holdfast/testing/contract/authorization-cases.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { createOrganizations, grpcAs, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type Marked, markEverything } from "./marked-organization.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);

/** The owner of another organization calls every RPC about this organization's objects; no response reveals them. */
let platform: Platform;
let organizations: Organizations;
let marked: Marked;
let outsider: Rest;
let channel: GrpcChannel;
/** Ids of all objects of the organization, of every kind, and the text in each of their names. */
let marks: readonly string[];

beforeAll(async () => {
  platform = await startPlatform();
  organizations = createOrganizations(platform);
  marked = await markEverything(platform, await organizations.first());
  marks = [...marksIn(await dumpEtcd(platform.directory), marked.existing.organizationId), marked.text];
  // The organization may have no services, which would use resources of other tests.
  const { authorization } = await organizations.createKey(await organizations.create("strangers", 0));
  outsider = platform.rest.as(authorization);
  channel = grpcAs(platform, authorization);
});
afterAll(async () => {
  channel?.close();
  organizations?.close();
  await platform?.remove();
});

function marksIn(dump: ReadonlyMap<string, string>, organizationId: string): Set<string> {
  const ids = new Set([organizationId]);
  for (const value of dump.values()) {
    if (!value.startsWith("{")) continue;
    const { metadata } = JSON.parse(value) as { metadata?: { id?: string; organizationId?: string } };
    // Ids that are words, such as the id of the first user, are in many texts.
    if (metadata?.organizationId === organizationId && /\d.*\d/.test(metadata.id ?? "")) ids.add(metadata.id ?? "");
  }
  return ids;
}

/** Marks of the organization in the text that the request did not contain itself. */
const leakedIn = (text: string, request: unknown) =>
  marks.filter((mark) => text.includes(mark) && !JSON.stringify(request).includes(mark));
/** A rejected request is in the caller's own audit log, under the name that it contained. */
const isOwnAuditLog = (method: DescMethod) => nameOf(method) === "holdfast.v1.AuditService.ListAuditLog";

/** The response over gRPC, with trailers and fields of bytes. */
async function overGrpc(method: DescMethod, request: JsonObject): Promise<string> {
  const input = fromJson(method.input, request, { ignoreUnknownFields: true });
  const readable = (_: string, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    return value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value;
  };
  try {
    return JSON.stringify(await channel.call(method.parent, method.localName, input), readable);
  } catch (error) {
    const { code, details, metadata } = error as ServiceError;
    const trailers = Object.entries(metadata.getMap()).map(([name, value]) => `${name}: ${value.toString("latin1")}`);
    return [code, details, ...trailers].join("\n");
  }
}

async function overRest(method: DescMethod, request: JsonObject, as = outsider): Promise<string> {
  const call = restCallOf(method, request);
  if (call === undefined) return "";
  const { verb, path, body } = call;
  const { status, headers, text } = await as.call(verb, path, body === undefined ? {} : { body });
  return `${status}\n${JSON.stringify(headers)}\n${text}`;
}

/**
 * The request with ids that never existed: its response must equal the response for another organization's objects.
 */
const madeUp = (request: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(request).map(([name, value]) => {
      if (typeof value !== "string" || !marks.includes(value)) return [name, value];
      const prefix = /^[a-z]+_/.exec(value)?.[0] ?? "";
      return [name, prefix === "" ? randomUUID() : `${prefix}${randomUUID().replaceAll("-", "")}`];
    }),
  );

/** Removes what differs between responses: ids, times and the remaining rate. */
const normalized = (response: string, request: JsonObject): string => {
  const [status = "", ...rest] = response.split("\n");
  const [, code] = /"code":"([a-z_]+)"/.exec(rest.at(-1) ?? "") ?? [];
  const [, detail] = /"detail":"([^"]*)"/.exec(rest.at(-1) ?? "") ?? [];
  const ids = Object.values(request).filter((value) => typeof value === "string");
  return [status, code, ids.reduce((text, id) => text.replaceAll(id, "ID"), detail ?? "")].join(" ");
};

test("the owner's own responses contain the marks", async () => {
  const telling: string[] = [];
  for (const method of methods.filter((each) => getOption(each, rules).readOnly)) {
    const request = requestOf(method, marked.existing) as JsonObject;
    if (leakedIn(await overRest(method, request, platform.rest), request).length > 0) telling.push(nameOf(method));
  }
  for (const list of [
    "ManagedServiceService.ListManagedServices",
    "EventService.ListEvents",
    "ApiKeyService.ListApiKeys",
  ])
    expect(telling).toContain(`holdfast.v1.${list}`);
  expect(telling.length).toBeGreaterThan(20);
});

// Requests for the caller's own objects come first: they contain no ids of others yet.
const ownFirst = methods.toSorted((a, b) => rank(a) - rank(b));
function rank(method: DescMethod): number {
  return caseOf(method).outsider === "own" ? 0 : 1;
}

test.each(ownFirst.map((method) => [nameOf(method), method] as const))(
  "%s returns nothing of it to the owner of another organization",
  async (_name, method) => {
    const request = requestOf(method, marked.existing) as JsonObject;
    for (const over of [overRest, overGrpc]) {
      const response = await over(method, request);
      expect([over.name, ...leakedIn(response, request)]).toEqual([over.name]);
      if (caseOf(method).outsider !== "not found" || JSON.stringify(request) === JSON.stringify(madeUp(request)))
        continue;
      const unknown = madeUp(request);
      expect(normalized(await over(method, unknown), unknown)).toBe(normalized(response, request));
    }
  },
);

/** Texts that filter lists. */
const filtersOf = (method: DescMethod): string[] =>
  method.input.fields
    .filter(({ fieldKind, scalar }) => fieldKind === "scalar" && scalar === ScalarType.STRING)
    .map(({ name }) => name);

const narrowed = methods.flatMap((method) => {
  const isOwn = caseOf(method).outsider === "own" && getOption(method, rules).readOnly;
  return isOwn ? filtersOf(method).map((filter) => [`${nameOf(method)} by ${filter}`, method, filter] as const) : [];
});

test.each(narrowed)("%s finds no object of another organization", async (_, method, filter) => {
  const { serviceId, organizationId, keyId } = marked.existing;
  for (const value of [serviceId, organizationId, keyId, `api_key:${keyId}`, marked.text, ...marked.cursors]) {
    const request = { [filter]: value };
    const brought = isOwnAuditLog(method) ? [request, ...Object.values(marked.existing)] : request;
    for (const over of [overRest, overGrpc])
      expect([over.name, value, ...leakedIn(await over(method, request), brought)]).toEqual([over.name, value]);
  }
});

test("an Idempotency-Key of another organization returns none of its stored responses", async () => {
  const headers = { "idempotency-key": "the same" };
  const body = { url: `https://1.1.1.1/${marked.text}` };
  const { json: first } = await platform.rest.post<{ id: string }>("/webhooks", body, { headers });
  const repeated = await platform.rest.post<{ id: string }>("/webhooks", body, { headers });
  expect(repeated.json.id).toBe(first.id);
  const ofOutsider = await outsider.post<{ id: string }>("/webhooks", body, { headers });
  expect([ofOutsider.status, ofOutsider.json.id === first.id, ofOutsider.text.includes(first.id)]).toEqual([
    201,
    false,
    false,
  ]);
});

test("a follower of events receives only its own organization's, while others have events too", async () => {
  const { authorization } = await organizations.createKey(await organizations.create("listeners"));
  const { hostname: host, port } = new URL(platform.admin.base_url);
  let received = "";
  const options = { host, port, ca: platform.ca, path: "/events?follow=true", agent: false };
  const outgoing = get({ ...options, headers: { authorization } }, (response) => {
    response.setEncoding("utf8").on("data", (chunk: string) => (received += chunk));
    response.on("error", () => undefined);
  });
  outgoing.on("error", () => undefined);
  try {
    const eventOf = async (rest: Rest, description: string) => {
      const { status, json } = await rest.post<{ id: string }>("/managed-services", {
        name: description,
        database_type: "postgresql",
        plan_name: "tier-1",
        storage_size_gb: 1,
      });
      expect(status).toBe(202);
      return json.id;
    };
    await eventOf(platform.rest, `${marked.text}-again`);
    const ownEvent = await eventOf(platform.rest.as(authorization), "heard");
    await waitUntil("its own event arrives", async () => received.includes(ownEvent));
    expect(leakedIn(received, "")).toEqual([]);
  } finally {
    outgoing.destroy();
  }
});
