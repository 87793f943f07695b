import { type DescMethod, fromJson, getOption, type JsonObject } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { isScope } from "@holdfast/controller/systems.ts";
import { ControlService, FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { organizationServices, platformServices, restMethods } from "@holdfast/testing/api/api-methods.ts";
import { type GrpcChannel, statusOf } from "@holdfast/testing/api/grpc-calls.ts";
import { listServices } from "@holdfast/testing/api/grpc-reflection.ts";
import { restCallOf } from "@holdfast/testing/api/rest-call.ts";
import {
  authorizationCases,
  caseOf,
  createExisting,
  nameOf,
  requestOf,
} from "@holdfast/testing/contract/authorization-cases.ts";
import type { Existing } from "@holdfast/testing/contract/contract.ts";
import { createOrganizations, grpcAs, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);
const scopeOf = (method: DescMethod) => getOption(method, rules).scope;
/** Scopes that organizations grant. */
const everyScope = [...new Set(methods.map(scopeOf))].filter(isScope);
/** Scopes that no role grants: no credential is needed, or any valid one suffices. */
const ungiven: readonly string[] = ["public", "signed-in"];

/** Field masks in JSON spell paths in camel case. */
const camelCase = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

describe("authorization", () => {
  it.each(methods.map((method) => [nameOf(method), method] as const))(
    "%s declares a scope and has a case",
    (_name, method) => {
      expect([...everyScope, ...ungiven, "platform:read", "platform:write"]).toContain(scopeOf(method));
      expect(caseOf(method).outsider).toMatch(/./);
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
      existing = await createExisting(platform.rest, "target", {
        serviceId: service.id,
        operationId: (await services.operations(service.id))[0]?.id ?? "",
        machineId: machines[0]?.id ?? "",
        controllerId: controllers[0]?.id ?? "",
        organizationId,
      });
      before = service;

      const otherOrganization = await organizations.create("outsiders");
      const revoked = await organizations.createKey(organizationId);
      channels.set("nobody", grpcAs(platform, undefined));
      channels.set("revoked", grpcAs(platform, revoked.authorization));
      const outsider = (await organizations.createKey(otherOrganization)).authorization;
      channels.set("outsider", grpcAs(platform, outsider));
      const brief = await platform.rest.post<{ token: string }>("/tokens", { scopes: everyScope, ttl_seconds: 1 });
      const credentials: Record<string, string | undefined> = {
        nobody: undefined,
        revoked: revoked.authorization,
        tampered: `${platform.owner.slice(0, -4)}AAAA`,
        expired: `Bearer ${brief.json.token}`,
        outsider,
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

    async function overGrpc(caller: string, method: DescMethod): Promise<number> {
      const channel = channels.get(caller);
      if (channel === undefined) throw new Error(`there is no caller ${caller}`);
      // The gateway maps REST requests so: enumerations by their own spelling, and a mask of the members that are
      // present.
      const json = requestOf(method, existing);
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
      const call = restCallOf(method, requestOf(method, existing));
      if (call === undefined) return undefined;
      const { verb, path, body } = call;
      const api = platform.rest.as(authorizations[caller]);
      return (await api.call(verb, path, body === undefined ? {} : { body })).status;
    }

    it("the server lists exactly the services that this walk covers", async () => {
      const channel = channels.get("nobody");
      const listed = channel === undefined ? [] : await listServices(channel);
      const served = listed.filter((name) => name.startsWith("holdfast.")).sort();
      expect(served).toEqual([...organizationServices, ...platformServices].map(({ typeName }) => typeName).sort());
    });

    describe.each(methods.map((method) => [nameOf(method), method] as const))("%s", (_name, method) => {
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

      it.each([...getOption(method, rules).furtherScopes])("rejects a caller without %s", async (scope) => {
        expect(await overGrpc(`all but ${scope}`, method)).toBe(status.PERMISSION_DENIED);
        expect([undefined, 403]).toContain(await overRest(`all but ${scope}`, method));
      });

      const { outsider } = caseOf(method);
      if (outsider === "own") return;
      it("rejects the owner of another organization", async () => {
        const [grpc, http] = outsider === "no scope" ? [status.PERMISSION_DENIED, 403] : [status.NOT_FOUND, 404];
        expect(await overGrpc("outsider", method)).toBe(grpc);
        expect([undefined, http]).toContain(await overRest("outsider", method));
      });
    });

    it("shows an owner of another organization only their own objects", async () => {
      const list = await platform.rest.as(authorizations["outsider"]).get("/managed-services");
      expect(list.json).toEqual({ services: [], next_cursor: null });
    });

    it("has changed nothing", async () => {
      expect(await services.get(existing.serviceId)).toEqual({
        ...before,
        health: expect.anything(),
        backups: expect.anything(),
      });
      // The service's creation and the backup.
      expect(await services.operations(existing.serviceId)).toHaveLength(2);
    });
  });
});
