import { type Metadata, status } from "@grpc/grpc-js";
import { Health, HealthCheckResponse_ServingStatus } from "@holdfast/proto/grpc/health/v1/health_pb.ts";
import { ControlService, FleetService, OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import { ManagedServiceService, ManagedServiceStatus } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";
import type { GrpcChannel } from "@holdfast/testing/api/grpc-calls.ts";
import { statusOf } from "@holdfast/testing/api/grpc-calls.ts";
import { listServices, reflect } from "@holdfast/testing/api/grpc-reflection.ts";
import { grpcAs } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

describe("gRPC", () => {
  let platform: Platform;
  let owner: GrpcChannel;
  let operator: GrpcChannel;
  let anonymous: GrpcChannel;

  beforeAll(async () => {
    platform = await startPlatform();
    owner = grpcAs(platform, platform.owner);
    operator = grpcAs(platform, platform.operator);
    anonymous = grpcAs(platform, undefined);
  });
  afterAll(async () => {
    for (const channel of [owner, operator, anonymous]) channel?.close();
    await platform?.remove();
  });

  it("creates, shows, changes and deletes a service as REST does", async () => {
    const rpcs = owner.of(ManagedServiceService);
    const created = await rpcs.createManagedService({
      name: "by-grpc",
      databaseType: "valkey",
      planName: "tier-1",
      storageSizeGb: 1,
    });
    expect(created.status).toBe(ManagedServiceStatus.PENDING);
    const running = await waitUntil("it runs", async () => {
      const service = await rpcs.getManagedService({ id: created.id });
      return service.status === ManagedServiceStatus.RUNNING && service.operation === undefined ? service : undefined;
    });
    const rest = await platform.rest.get(`/managed-services/${created.id}`);
    expect(rest.json).toMatchObject({ name: running.name, hostname: running.hostname, port: running.port });
    const changed = await rpcs.updateManagedService({
      id: created.id,
      tags: { a: "b" },
      updateMask: { paths: ["tags"] },
    });
    expect(changed.tags).toEqual({ a: "b" });
    expect((await rpcs.listManagedServices({ limit: 1 })).services.map(({ id }) => id)).toEqual([created.id]);
    await rpcs.deleteManagedService({ id: created.id });
    await waitUntil(
      "it is absent",
      async () => (await statusOf(rpcs.getManagedService({ id: created.id }))) === status.NOT_FOUND,
    );
  });

  it("returns errors as statuses with the reason of the problem document", async () => {
    const rpcs = owner.of(ManagedServiceService);
    const invalid = { name: "Bad Name", databaseType: "postgresql", planName: "tier-1", storageSizeGb: 1 };
    await expect(rpcs.createManagedService(invalid)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
    const failure = await rpcs.createManagedService(invalid).catch((error: { metadata: Metadata }) => error);
    const details = (failure as { metadata: Metadata }).metadata.get("grpc-status-details-bin");
    expect(String(details[0])).toContain("google.rpc.BadRequest");
    expect(String(details[0])).toContain("google.rpc.ErrorInfo");
    await expect(rpcs.updateManagedService({ id: "x", name: "new" })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    });
    await expect(rpcs.getManagedService({ id: "none" })).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  it("rejects calls without a credential or with a wrong one", async () => {
    const wrong = grpcAs(platform, "Bearer hft_wrong");
    expect(await statusOf(anonymous.of(CatalogService).getCatalog({}))).toBe(status.UNAUTHENTICATED);
    expect(await statusOf(wrong.of(CatalogService).getCatalog({}))).toBe(status.UNAUTHENTICATED);
    wrong.close();
  });

  it("returns health without a credential, for the server and for each service", async () => {
    const health = anonymous.of(Health);
    const { SERVING } = HealthCheckResponse_ServingStatus;
    expect((await health.check({})).status).toBe(SERVING);
    for (const { typeName } of [...organizationServices, ...platformServices]) {
      expect((await health.check({ service: typeName })).status).toBe(SERVING);
    }
    expect(await statusOf(health.check({ service: "no.such.Service" }))).toBe(status.NOT_FOUND);
  });

  it("lists its services by reflection, and describes each symbol of them, without a credential", async () => {
    const names = await listServices(anonymous);
    const served = [...organizationServices, ...platformServices].map(({ typeName }) => typeName);
    expect(names).toEqual(expect.arrayContaining(served));
    for (const name of served) {
      const found = await reflect(anonymous, { messageRequest: { case: "fileContainingSymbol", value: name } });
      expect(found.case).toBe("fileDescriptorResponse");
    }
    const absent = await reflect(anonymous, {
      messageRequest: { case: "fileContainingSymbol", value: "no.such.Symbol" },
    });
    expect(absent.case).toBe("errorResponse");
  });

  describe("holdfast.admin.v1", () => {
    it("is for platform operators alone", async () => {
      for (const channel of [owner]) {
        expect(await statusOf(channel.of(FleetService).listMachines({}))).toBe(status.PERMISSION_DENIED);
        expect(await statusOf(channel.of(ControlService).listControllers({}))).toBe(status.PERMISSION_DENIED);
        expect(await statusOf(channel.of(OrganizationService).listOrganizations({}))).toBe(status.PERMISSION_DENIED);
      }
      expect(await statusOf(anonymous.of(FleetService).listMachines({}))).toBe(status.UNAUTHENTICATED);
    });

    it("lists machines, sessions, tasks and terms", async () => {
      const rpcs = owner.of(ManagedServiceService);
      const { id } = await rpcs.createManagedService({
        name: "fleet",
        databaseType: "valkey",
        planName: "tier-1",
        storageSizeGb: 1,
      });
      await waitUntil("it runs", async () => {
        return (await rpcs.getManagedService({ id })).status === ManagedServiceStatus.RUNNING;
      });
      const fleet = operator.of(FleetService);
      const { machines } = await fleet.listMachines({});
      expect(machines).toMatchObject([{ ownerId: id, state: "running", desired: "on" }]);
      const machineId = machines[0]?.id ?? "";
      const { controllers } = await operator.of(ControlService).listControllers({});
      expect(controllers).toMatchObject([{ draining: false, sessions: 1 }]);
      expect((await fleet.listSessions({})).sessions).toMatchObject([{ machineId, controllerId: controllers[0]?.id }]);
      expect((await fleet.listTerms({})).terms).toMatchObject([{ serviceId: id, term: 1n, primaryNodeId: machineId }]);
      for (const { status: state } of (await fleet.listTasks({ machineId })).tasks) {
        expect(["pending", "running", "completed", "failed"]).toContain(state);
      }
      expect((await fleet.sweepOrphans({ dryRun: true })).orphans).toEqual([]);
      const probe = await fleet.probeTransfer({ machineId, sizeBytes: 3_000_000n });
      expect(probe.sha256).toMatch(/^[0-9a-f]{64}$/);
      await rpcs.deleteManagedService({ id });
      await waitUntil(
        "it is absent",
        async () => (await statusOf(rpcs.getManagedService({ id }))) === status.NOT_FOUND,
      );
    });

    it("records each action with its actor and source, newest first", async () => {
      const entries = await waitUntil("the audit has the deletion", async () => {
        const { entries: found } = await operator.of(OrganizationService).listAuditEntries({ page: { limit: 200 } });
        return found.some(({ action }) => action === "managed-service.delete") ? found : undefined;
      });
      const created = entries.find(({ action }) => action === "managed-service.create");
      expect(created).toMatchObject({
        actor: `api_key:${platform.admin.api_key_id}`,
        source: "127.0.0.1",
        objectKind: "managed-service",
        result: "ok",
      });
      const times = entries.map(({ time }) => Number(time?.seconds ?? 0n));
      expect(times).toEqual(times.toSorted((a, b) => b - a));
    });

    it("pages its lists", async () => {
      const rpcs = operator.of(OrganizationService);
      for (const name of ["page-a", "page-b", "page-c"]) await rpcs.createOrganization({ name });
      const names: string[] = [];
      for (let cursor = ""; ; ) {
        const { organizations, nextCursor } = await rpcs.listOrganizations({ page: { limit: 2, cursor } });
        names.push(...organizations.map(({ name }) => name));
        if (nextCursor === "") break;
        cursor = nextCursor;
      }
      expect(names).toEqual(["default", "page-a", "page-b", "page-c"]);
      expect(await statusOf(rpcs.createOrganization({ name: "page-a" }))).toBe(status.ALREADY_EXISTS);
    });

    it("creates an encrypted snapshot of the control plane", async () => {
      const backup = await operator.of(ControlService).backupControlPlane({});
      expect(backup.sizeBytes).toBeGreaterThan(0n);
    });

    it("grants no platform scopes to keys", async () => {
      const rpcs = operator.of(OrganizationService);
      const organizationId = (await rpcs.listOrganizations({})).organizations[0]?.id ?? "";
      const createKeyStatus = (scopes: string[]) =>
        statusOf(rpcs.createApiKey({ organizationId, name: "key", scopes }));
      expect(await createKeyStatus(["platform:read"])).toBe(status.INVALID_ARGUMENT);
      expect(await createKeyStatus(["platform:*"])).toBe(status.INVALID_ARGUMENT);
      expect(await createKeyStatus(["nonsense"])).toBe(status.INVALID_ARGUMENT);
    });
  });
});
