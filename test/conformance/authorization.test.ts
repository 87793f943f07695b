import { type DescMethod, fromJson, getOption, type JsonObject } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { ControlService, FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { organizationServices, platformServices, restMethods } from "../support/api/api-methods.ts";
import { type GrpcChannel, statusOf } from "../support/api/grpc-calls.ts";
import { listServices } from "../support/api/grpc-reflection.ts";
import { restCallOf } from "../support/api/rest-call.ts";
import { createOrganizations, grpcAs, type Organizations } from "../support/platform/organizations.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { createServices, type Services } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { authorizationCases, type Existing } from "./authorization-cases.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);
const nameOf = (method: DescMethod) => `${method.parent.typeName}.${method.name}`;
const scopeOf = (method: DescMethod) => getOption(method, rules).scope;
const everyScope = [
  "inference:manage",
  ...["read", "write", "secrets", "data"].map((right) => `services:${right}`),
  ...["webhooks", "exports", "org", "keys"].flatMap((area) => [`${area}:read`, `${area}:write`]),
  ...["read", "write", "data"].map((right) => `apps:${right}`),
  ...["webhooks", "org", "keys", "projects", "stacks", "pipelines"].flatMap((area) => [
    `${area}:read`,
    `${area}:write`,
  ]),
  "audit:read",
  "organization:delete",
];
/** Scopes that no role grants: no credential is needed, or any valid one suffices. */
const ungiven: readonly string[] = ["public", "signed-in"];

/** Field masks in JSON spell paths in camel case. */
const camelCase = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

describe("authorization", () => {
  it.each(methods.map((method) => [nameOf(method), method] as const))(
    "%s declares a scope and has a case",
    (name, method) => {
      expect([...everyScope, ...ungiven, "platform:read", "platform:write"]).toContain(scopeOf(method));
      expect(authorizationCases[name]).toBeDefined();
    },
  );

  it("has no case for a method that is not served", () => {
    expect(
      Object.keys(authorizationCases).filter((name) => !methods.some((method) => nameOf(method) === name)),
    ).toEqual([]);
  });

  describe("of every method", () => {
    let platform: Platform;
    let services: Services;
    let organizations: Organizations;
    let existing: Existing;
    let before: object;
    const channels = new Map<string, GrpcChannel>();

    beforeAll(async () => {
      platform = await startPlatform();
      services = createServices(platform);
      organizations = createOrganizations(platform);
      const { service } = await services.createRunning("target");
      const operator = grpcAs(platform, platform.operator);
      const { controllers } = await operator.of(ControlService).listControllers({});
      const { machines } = await operator.of(FleetService).listMachines({});
      operator.close();
      const organizationId = await organizations.first();
      existing = {
        serviceId: service.id,
        operationId: (await services.operations(service.id))[0]?.id ?? "",
        machineId: machines[0]?.id ?? "",
        controllerId: controllers[0]?.id ?? "",
        organizationId,
        keyId: (await organizations.createKey(organizationId)).id,
        webhookId: (await platform.rest.post<{ id: string }>("/webhooks", { url: "https://1.1.1.1/", events: [] })).json
          .id,
        backupId: (await platform.rest.post<{ id: string }>(`/managed-services/${service.id}/backups`)).json.id,
        channelId: "",
        appId: "",
        ruleId: "",
        exportId: "",
        inferenceKeyId: "",
        projectId: "",
        projectName: "target",
        deploymentId: "",
        tokenId: (await platform.rest.post<{ id: string }>("/tokens", { scopes: ["services:read"], ttl_seconds: 600 }))
          .json.id,
      };
      const rule = { metric: "cpu", condition: "gt", threshold: 101 };
      const channel = { name: "target", type: "webhook", config: { url: "https://1.1.1.1/" } };
      const idOf = async (path: string, body: object) => (await platform.rest.post<{ id: string }>(path, body)).json.id;
      const integration = {
        service_id: service.id,
        name: "target",
        destination_type: "prometheus_remote_write",
        data_type: "metrics",
        configuration: { url: "https://1.1.1.1/" },
      };
      existing = {
        ...existing,
        exportId: await idOf("/api/v1/metrics-exports", integration),
        ruleId: await idOf(`/managed-services/${service.id}/alerts/rules`, rule),
        channelId: await idOf("/alerts/channels", channel),
        inferenceKeyId: await idOf(`/organizations/${organizationId}/inference/keys`, { name: "target" }),
        appId: await idOf("/app-services", { name: "target" }),
      };
      const descriptor = { name: "target", resources: [] };
      const deployed = await platform.rest.post<Record<string, string>>("/projects/deploy", { descriptor });
      existing = {
        ...existing,
        projectId: deployed.json["project_id"] ?? "",
        deploymentId: deployed.json["deployment_id"] ?? "",
      };
      before = service;

      const strangers = await organizations.create("strangers");
      const revoked = await organizations.createKey(organizationId);
      channels.set("nobody", grpcAs(platform, undefined));
      channels.set("revoked", grpcAs(platform, revoked.authorization));
      const stranger = (await organizations.createKey(strangers)).authorization;
      channels.set("stranger", grpcAs(platform, stranger));
      const brief = await platform.rest.post<{ token: string }>("/tokens", { scopes: everyScope, ttl_seconds: 1 });
      const credentials: Record<string, string | undefined> = {
        nobody: undefined,
        revoked: revoked.authorization,
        tampered: `${platform.owner.slice(0, -4)}AAAA`,
        expired: `Bearer ${brief.json.token}`,
        stranger,
      };
      for (const caller of ["tampered", "expired"]) channels.set(caller, grpcAs(platform, credentials[caller]));
      for (const scope of [...everyScope, "platform:read", "platform:write"]) {
        const others = everyScope.filter((candidate) => candidate !== scope);
        const { authorization } = await organizations.createKey(organizationId, others);
        credentials[`all but ${scope}`] = authorization;
        channels.set(`all but ${scope}`, grpcAs(platform, authorization));
      }
      authorizations = credentials;
      await organizations.revokeKey(revoked.id);
      await waitUntil(
        "the key is revoked",
        async () => (await platform.rest.as(revoked.authorization).get("/catalog")).status === 401,
      );
      await waitUntil(
        "the token is over",
        async () => (await platform.rest.as(credentials["expired"]).get("/catalog")).status === 401,
      );
    });
    afterAll(async () => {
      for (const channel of channels.values()) channel.close();
      organizations?.close();
      await platform?.remove();
    });
    let authorizations: Record<string, string | undefined>;

    const requestOf = (method: DescMethod) => authorizationCases[nameOf(method)]?.request(existing) ?? {};

    async function overGrpc(caller: string, method: DescMethod): Promise<number> {
      const channel = channels.get(caller);
      if (channel === undefined) throw new Error(`there is no caller ${caller}`);
      // The gateway maps REST requests so: enumerations by their own spelling, and a mask of the members that are
      // present.
      const json = requestOf(method);
      const rest = restMethods.find((candidate) => candidate.method === method);
      const inPath = (name: string) => name.endsWith("_id") || rest?.path.includes(`{${name}}`) === true;
      const paths = Object.keys(json).filter((name) => !inPath(name));
      const enums = method.input.fields.filter(({ name, fieldKind }) => fieldKind === "enum" && name in json);
      const isMasked = method.input.fields.some(({ name }) => name === "update_mask");
      const input = fromJson(method.input, {
        ...json,
        ...Object.fromEntries(enums.map(({ name }) => [name, 1])),
        ...(isMasked ? { update_mask: paths.map(camelCase).join(",") } : {}),
      } as JsonObject);
      return statusOf(channel.call(method.parent, method.localName, input));
    }

    async function overRest(caller: string, method: DescMethod): Promise<number | undefined> {
      const call = restCallOf(method, requestOf(method));
      if (call === undefined) return undefined;
      const { verb, path, body } = call;
      const api = platform.rest.as(authorizations[caller]);
      return (await api.call(verb, path, body === undefined ? {} : { body })).status;
    }

    it("the server lists exactly the services that this walk covers", async () => {
      const channel = channels.get("nobody");
      const listed = channel === undefined ? [] : await listServices(channel);
      const ours = listed.filter((name) => name.startsWith("holdfast.")).sort();
      expect(ours).toEqual([...organizationServices, ...platformServices].map(({ typeName }) => typeName).sort());
    });

    describe.each(methods.map((method) => [nameOf(method), method] as const))("%s", (name, method) => {
      const credential = scopeOf(method) === "public" ? it.skip : it;
      credential.each(["nobody", "revoked", "tampered", "expired"])(
        "refuses a caller with no good credential: %s",
        async (caller) => {
          expect(await overGrpc(caller, method)).toBe(status.UNAUTHENTICATED);
          expect([undefined, 401]).toContain(await overRest(caller, method));
        },
      );

      it.skipIf(ungiven.includes(scopeOf(method)))("rejects a caller with every other scope", async () => {
        const caller = `all but ${scopeOf(method)}`;
        expect(await overGrpc(caller, method)).toBe(status.PERMISSION_DENIED);
        expect([undefined, 403]).toContain(await overRest(caller, method));
      });

      const { stranger } = authorizationCases[name] ?? {};
      if (stranger === "own") return;
      it("rejects the owner of another organization", async () => {
        const [grpc, http] = stranger === "no scope" ? [status.PERMISSION_DENIED, 403] : [status.NOT_FOUND, 404];
        expect(await overGrpc("stranger", method)).toBe(grpc);
        expect([undefined, http]).toContain(await overRest("stranger", method));
      });
    });

    it("shows an owner of another organization only their own objects", async () => {
      const list = await platform.rest.as(authorizations["stranger"]).get("/managed-services");
      expect(list.json).toEqual({ services: [], next_cursor: null });
    });

    it("has changed nothing", async () => {
      expect(await services.get(existing.serviceId)).toEqual({
        ...before,
        health: expect.anything(),
        backups: expect.anything(),
      });
      // Its creation and the backup.
      expect(await services.operations(existing.serviceId)).toHaveLength(2);
    });
  });
});
