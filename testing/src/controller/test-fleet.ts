import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import type { Log, LogFields } from "@holdfast/common/log.ts";
import { createFleet } from "@holdfast/controller/fleet/create-fleet.ts";
import type { FleetDeps, RunningFleet } from "@holdfast/controller/fleet/running-fleet.ts";
import { mintEnrollment } from "@holdfast/controller/kernel/pki/enrollment.ts";
import { taskKind, type TaskObject } from "@holdfast/controller/fleet/task/task.ts";
import { machineKind, type MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { createPayloads } from "@holdfast/controller/fleet/payload/payloads.ts";
import {
  createAuthority,
  type InstallationAuthority,
  type Lifetimes,
} from "@holdfast/controller/kernel/pki/create-authority.ts";
import {
  createControllerRegistry,
  type ControllerRegistry,
} from "@holdfast/controller/kernel/runtime/controller-registry.ts";
import { createSealer, type Sealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "@holdfast/controller/kernel/store/collection.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import type { Store } from "@holdfast/controller/kernel/store/store.ts";
import { startTestEtcd, type TestEtcd } from "./etcd.ts";
import { waitUntil } from "../wait-until.ts";
import { type AgentIdentity, dial, enroll } from "../machines/test-agent.ts";

export const installationId = "inst-test";

/** One controller's fleet on a real etcd, alone in this process or beside others. */
export interface TestController {
  readonly fleet: RunningFleet;
  readonly store: Store;
  readonly authority: InstallationAuthority;
  readonly machines: Collection<MachineObject>;
  readonly tasks: Collection<TaskObject>;
  readonly sealer: Sealer;
  readonly controllerRegistry: ControllerRegistry;
  readonly address: string;
  readonly logged: { message: string; fields: LogFields }[];
  /** Stores a machine; resolves with the token that enrolls it. */
  newMachine(machineId: string): Promise<string>;
  /** Stores and enrolls a machine; resolves with its certificate. */
  newAgent(machineId: string): Promise<AgentIdentity>;
  dial(identity: AgentIdentity): ReturnType<typeof dial>;
  /** Closes the controller; repeated calls do nothing. */
  close(): Promise<void>;
}

/** State that controllers of one installation share. */
export interface TestInstallation {
  readonly etcd: TestEtcd;
  readonly masterKey: Buffer;
  readonly directory: string;
  /** Controllers of the installation, open or closed. */
  readonly controllers: TestController[];
  /** Closes the installation's controllers too, and its etcd unless that was passed in. */
  close(): Promise<void>;
}

/** An empty installation on `given`, or else on a new etcd. */
export async function newInstallation(existing?: TestEtcd): Promise<TestInstallation> {
  const etcd = existing ?? (await startTestEtcd());
  const directory = await mkdtemp(join(tmpdir(), "holdfast-fleet-"));
  const controllers: TestController[] = [];
  return {
    etcd,
    masterKey: randomBytes(32),
    directory,
    controllers,
    async close() {
      for (const controller of controllers) await controller.close();
      await rm(directory, { recursive: true, force: true });
      if (existing === undefined) await etcd.stop();
    },
  };
}

interface TestControllerOptions {
  readonly lifetimes?: Partial<Lifetimes>;
  readonly leaseS?: number;
  /** Additional gRPC services on the controller's listener. */
  readonly services?: (controllerRegistry: ControllerRegistry) => NonNullable<FleetDeps["services"]>;
}

export async function startController(
  { etcd, masterKey, directory, controllers }: TestInstallation,
  controllerId: string,
  options: Omit<Partial<FleetDeps>, "services"> & TestControllerOptions = {},
): Promise<TestController> {
  const { lifetimes = {}, leaseS = 5, services, ...overrides } = options;
  const logged: TestController["logged"] = [];
  const log = recordingLog(logged);
  const clock = systemClock;
  const store = createEtcdStore({ hosts: [etcd.url], log });
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", masterKey]]) });
  const authority = await createAuthority({ store, sealer, installationId, clock, log, lifetimes });
  const machines = createCollection(store, machineKind);
  const tasks = createCollection(store, taskKind);
  const payloads = createPayloads(createDirectoryStore(directory), { newId: randomUUID, maxBytes: 64 << 20 });
  const controllerRegistry = createControllerRegistry({ store, id: controllerId, leaseS, clock, log });
  const fleet = await createFleet({
    controllerRegistry,
    installationId,
    store,
    machines,
    tasks,
    authority,
    sealer,
    payloads,
    clock,
    log,
    host: "127.0.0.1",
    port: 0,
    ...(services && { services: services(controllerRegistry) }),
    ...overrides,
  });
  await waitUntil("the controller is registered with its address", () =>
    controllerRegistry.controllers().some(({ id, address }) => id === controllerId && address !== ""),
  );
  const address = `127.0.0.1:${fleet.port}`;

  async function newMachine(machineId: string): Promise<string> {
    const { token, enrollment } = mintEnrollment(sealer, clock);
    const key = keyOf(machineKind, machineId);
    const before = await store.get(key);
    const machine: MachineObject =
      before === undefined ? blankMachine(machineId, clock.now()) : (JSON.parse(before.value) as MachineObject);
    const value = JSON.stringify({ ...machine, status: { ...machine.status, enrollment } });
    await store.commit({ conditions: [], puts: [{ key, value }], deletes: [] });
    return token;
  }

  let closed: Promise<void> | undefined;
  const controller: TestController = {
    fleet,
    store,
    authority,
    machines,
    tasks,
    sealer,
    controllerRegistry,
    address,
    logged,
    newMachine,
    async newAgent(machineId) {
      const token = await newMachine(machineId);
      return enroll({ address, trustBundle: authority.trustBundle, installationId, machineId, token });
    },
    dial: (identity) => dial({ address, trustBundle: authority.trustBundle, identity }),
    close: () => (closed ??= close()),
  };
  controllers.push(controller);
  return controller;

  async function close(): Promise<void> {
    await fleet.close();
    await controllerRegistry.leave().catch(() => undefined);
    for (const part of [machines, tasks, authority]) part.close();
    await store.close();
  }
}

function blankMachine(id: string, now: number): MachineObject {
  return {
    metadata: { id, name: id, organizationId: "", generation: 1, createdAt: now, updatedAt: now },
    spec: {
      owner: { kind: "managed-service", id: `service-of-${id}` },
      software: { name: "postgresql", version: "17" },
      image: "",
      vcpu: 1,
      memoryBytes: 1 << 30,
      rootBytes: 2 ** 32,
      diskBytes: 1 << 30,
      zone: "local",
      storageTier: "maxiops",
      hostId: "local",
      apart: "preferred",
      power: "on",
      serverNames: [`${id}.local.holdfast.test`],
    },
    status: {
      state: "running",
      reason: "",
      address: "127.77.0.1",
      publicAddress: "127.77.0.1",
      enrollment: null,
      certificate: null,
    },
  };
}

function recordingLog(into: TestController["logged"], bound: LogFields = {}): Log {
  const note = (message: string, fields: LogFields = {}) =>
    void into.push({ message, fields: { ...bound, ...fields } });
  return {
    debug() {},
    info: note,
    warn: note,
    error: note,
    child: (fields) => recordingLog(into, { ...bound, ...fields }),
  };
}
