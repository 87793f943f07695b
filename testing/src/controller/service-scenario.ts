import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { silentLog } from "@holdfast/common/log.ts";
import { guestKernelSeries, type MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { planSnapshotRemovals } from "@holdfast/controller/fleet/machine/snapshot-removal.ts";
import { isNextOutcome, planSnapshot } from "@holdfast/controller/fleet/machine/machine-snapshot.ts";
import type { MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { desiredImages } from "@holdfast/controller/services/service/canary/node-image.ts";
import { snapshotFor } from "@holdfast/controller/services/service/canary/write-fence.ts";
import { beginMaintenance } from "@holdfast/controller/services/maintenance/begin-maintenance.ts";
import { seriesNameOf, type NodeImageObject } from "@holdfast/controller/services/maintenance/node-image.ts";
import type { MaintenanceContext } from "@holdfast/controller/services/maintenance/pending-update.ts";
import { pendingUpdates } from "@holdfast/controller/services/maintenance/pending-updates.ts";
import { obstacleOf } from "@holdfast/controller/services/maintenance/update-schedule.ts";
import { isFinished, type OperationObject } from "@holdfast/controller/operation/operation.ts";
import type { ManagedServiceObject } from "@holdfast/controller/services/service/managed-service.ts";
import type {
  ObservedNode,
  ObservedService,
  ServiceStep,
} from "@holdfast/controller/services/service/reconcile/observed-service.ts";
import { procedureOf } from "@holdfast/controller/services/service/procedure/procedures.ts";
import { advance } from "@holdfast/controller/services/service/reconcile/service-advance.ts";
import {
  refuseWhileBusy,
  requestCommand,
  type ServiceCommand,
} from "@holdfast/controller/services/service/service-commands.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect } from "vitest";
import { readyHost } from "../platform/ready-host.ts";
import { newServiceObject, node } from "./service-object.ts";
import { partial } from "../partial.ts";

/** Defects of a newer image; the old image has none. */
export const faultsOfImages = [
  "start the machine",
  "start the engine",
  "bring its version",
  "order texts alike",
  "connect",
  "keep the data",
] as const;

/** Defects of a newer kernel of a virtual machine. */
export const faultsOfKernels = ["start the machine", "connect", "keep the data"] as const;

/** Parts that fail; all other parts work. */
interface BrokenParts {
  readonly engine?: boolean;
  readonly machine?: boolean;
  readonly silent?: boolean;
  readonly image?: (typeof faultsOfImages)[number] | undefined;
  readonly kernel?: (typeof faultsOfKernels)[number] | undefined;
}

/** Image and kernel of the service's machine. */
interface CreatedFrom {
  readonly image: "old" | "new";
  /** Kernel of a virtual machine; absent for a container. */
  readonly guestKernel?: "guest-old" | "guest-new";
  /** Protocol version of the machine's keeper at first; every start of the machine brings a keeper of version 5. */
  readonly keeper?: number;
}

/** Requests of users for a service. */
export const requests = ["start", "stop", "restart", "delete", "maintain"] as const satisfies readonly (
  | ServiceCommand
  | "maintain"
)[];
type UserRequest = (typeof requests)[number];

const hosts = [readyHost("a", {}, { imageIds: ["old", "new", "guest-old", "guest-new"] })];
const images: NodeImageObject[] = [
  imageWith("old", 0, { engine: "postgresql", version: "17", engineVersion: "17.0" }),
  imageWith("new", 1, { engine: "postgresql", version: "17", engineVersion: "17.1" }),
  imageWith("guest-old", 0, { ...guestKernelSeries, engineVersion: "6.12.0" }),
  imageWith("guest-new", 1, { ...guestKernelSeries, engineVersion: "6.12.1" }),
];

function imageWith(id: string, age: 0 | 1, engine: NodeImageObject["spec"]["engines"][number]): NodeImageObject {
  return {
    metadata: { id, name: id, organizationId: "", generation: 1, createdAt: age, updatedAt: 0 },
    spec: { engines: [engine], urgent: null },
    status: { newestOf: age === 0 ? [] : [seriesNameOf(engine.engine, engine.version)] },
  };
}

/** A small model of the machines, the agents and the zone, for the pure parts to act on. */
export function createServiceScenario(broken: BrokenParts = {}, created: CreatedFrom = { image: "old" }) {
  let { service, operation }: { service: ManagedServiceObject | undefined; operation: OperationObject } =
    newServiceObject();
  let machine: MachineObject | undefined;
  let instance: ObservedNode["instance"];
  let names: ObservedService["names"] = "absent";
  let now = 1;
  let operations = 0;
  /** True while the machine's host is drained. */
  let stoppedForDrain = false;
  /** The last setting that its agent received, and applies when its machine starts. */
  let engineEnabled = false;
  let admitsClients = false;
  /** Writes of clients: as acknowledged, and as in the data, which the engine of an image may damage. */
  let acknowledged = 0;
  let data = { writes: 0, damaged: false };
  const snapshots = new Map<string, typeof data>();
  let isSilent = broken.silent === true;
  /** True while a change of users or databases is in progress. */
  let isChanging = false;

  /** Image that the machine runs from, as its provider records it. */
  let placed: string = created.image;
  /** Kernel that the machine boots from. */
  let booted: string | undefined = created.guestKernel;
  let keeper = created.keeper ?? 5;
  const fails = (what: BrokenParts["image"]) =>
    (placed === "new" && broken.image === what) || (booted === "guest-new" && broken.kernel === what);
  const observed = (): ObservedService => {
    const connected = machine?.status.state === "running" && !isSilent && !fails("connect");
    const nodes = [{ node, machine, connected, instance, stoppedForDrain, isCurrent: true, silentHost: undefined }];
    return { nodes, names, isChanging };
  };
  /** Starts the engine; returns its state. */
  function launch(): "running" | "failed" {
    if (fails("keep the data")) data = { ...data, damaged: true };
    return broken.engine || data.damaged || fails("start the engine") ? "failed" : "running";
  }
  function clientsWrite(): void {
    if (machine?.status.state !== "running" || instance?.state !== "running" || !admitsClients) return;
    acknowledged += 1;
    data = { ...data, writes: data.writes + 1 };
  }
  /** Applies a machine's data snapshot or rollback, as its reconciler does before a start. */
  function secureData(of: MachineObject): MachineObject {
    const names = () => [...snapshots.keys()];
    const facts = () =>
      partial<MachineFacts>({
        snapshots: names(),
        starts: 0,
        state: of.status.state === "running" ? "running" : "stopped",
      });
    for (const { name } of planSnapshotRemovals(of, facts(), 0).steps) snapshots.delete(name);
    if (of.status.state !== "stopped") return of;
    let after = of;
    for (const { kind, name } of planSnapshot(of, facts())) {
      if (kind === "takeSnapshot") snapshots.set(name, data);
      if (kind === "restoreSnapshot") data = snapshots.get(name) ?? data;
      const outcome = kind === "takeSnapshot" ? "taken" : "restored";
      const snapshot = { name, outcome, reason: "" } as const;
      expect(isNextOutcome(after, snapshot)).toBe(true);
      after = { ...after, status: { ...after.status, snapshot } };
    }
    return after;
  }

  function perform(step: ServiceStep): void {
    const current = service;
    if (current === undefined) return;
    if (step.kind === "createMachine") {
      machine = {
        metadata: { ...current.metadata, id: node.id },
        spec: { power: current.spec.power, ...created } as MachineObject["spec"],
        status: {
          state: "pending",
          reason: "",
          address: "127.0.0.2",
          publicAddress: "127.0.0.2",
          enrollment: null,
          certificate: null,
        },
      };
    } else if (step.kind === "powerMachine" && machine)
      machine = { ...machine, spec: { ...machine.spec, power: step.power } };
    else if (step.kind === "installImage" && machine) {
      expect(machine.status.state).toBe("stopped");
      const snapshot = snapshotFor(current, machine);
      machine = { ...machine, spec: { ...machine.spec, power: "on", ...desiredImages(current), snapshot } };
    } else if (step.kind === "deleteSnapshot" && machine) {
      machine = { ...machine, spec: { ...machine.spec, snapshot: null } };
    } else if (step.kind === "deleteMachine") [machine, instance] = [undefined, undefined];
    else if (step.kind === "publishNames") names = "published";
    else if (step.kind === "verifyNames") names = "verified";
    else if (step.kind === "withdrawNames") names = "absent";
    else if (step.kind === "forget") service = undefined;
    else if (step.kind === "converge") {
      engineEnabled = step.running;
      admitsClients = current.spec.canary === undefined;
      const state = step.running ? launch() : "stopped";
      instance = create(InstanceObservationSchema, {
        state,
        reason: state === "failed" ? "the engine refused" : "",
        engineVersion: placed === "new" && !fails("bring its version") ? "17.1" : "17.0",
        checks: [
          { name: "liveness", status: "healthy", reason: "" },
          { name: "collation", status: fails("order texts alike") ? "degraded" : "healthy", reason: "" },
        ],
        since: timestampFromMs(now),
        generation: BigInt(step.generation),
        savedGeneration: BigInt(step.generation),
        restartCount: BigInt(current.spec.restartCount),
      });
    }
  }

  function machineMoves(): void {
    if (machine === undefined) return;
    machine = secureData(machine);
    const { power } = machine.spec;
    // As machines do it: a stopped machine gets another image, which takes effect at its start.
    if (machine.status.state === "stopped") [placed, booted] = [machine.spec.image, machine.spec.guestKernel];
    const isBroken = broken.machine || (power === "on" && fails("start the machine"));
    const state = isBroken ? "failed" : power === "on" ? "running" : "stopped";
    const starts = machine.status.state === "stopped" && state === "running";
    if (starts) keeper = 5;
    if (starts && instance && engineEnabled) {
      const launched = launch();
      instance = { ...instance, state: launched, reason: launched === "failed" ? "the engine refused" : "" };
    }
    // A stopped machine reports no running engine.
    if (state === "stopped" && instance) instance = { ...instance, state: "stopped" };
    machine = { ...machine, status: { ...machine.status, state, reason: isBroken ? "the disk is full" : "" } };
  }

  return {
    get service() {
      return service;
    },
    get operation() {
      return operation;
    },
    command(request: UserRequest): void {
      if (request === "maintain") return this.maintain();
      if (service === undefined) return;
      try {
        const outcome = requestCommand(service, request, isFinished(operation) ? undefined : operation, {
          operationId: `op-${++operations}`,
          now,
        });
        if (outcome.kind === "change") [service, operation] = [outcome.after, outcome.operation];
      } catch (error) {
        expect((error as { key?: string }).key).toMatch(/WRONG_STATE|OPERATION_IN_PROGRESS/);
      }
    },
    /** Requests maintenance as the API does; a rejected request changes nothing. */
    maintain(acceptsTextOrder = false): void {
      if (service === undefined || service.metadata.deletionRequestedAt !== undefined) return;
      const { image = "", guestKernel = "" } = machine?.spec ?? {};
      const keepers = [{ has: keeper, next: 5 }];
      const context: MaintenanceContext = {
        images,
        hosts,
        image,
        guestKernel,
        instance,
        keepers,
        snapshotProblem: "",
        now,
      };
      const updates = pendingUpdates(service, context);
      if (updates.length === 0 || obstacleOf(service, context) !== undefined) return;
      try {
        refuseWhileBusy(service, isFinished(operation) ? undefined : operation);
      } catch {
        return;
      }
      const request = { operationId: `op-${++operations}`, automatic: false, now, acceptsTextOrder };
      ({ after: service, operation } = beginMaintenance(service, updates, context, request));
    },
    get data() {
      return { ...data, acknowledged, snapshots: snapshots.size };
    },
    silence(silent: boolean): void {
      isSilent = silent;
    },
    change(changing: boolean): void {
      isChanging = changing;
    },
    pauseAutomation(isPaused: boolean): void {
      stoppedForDrain = isPaused;
    },
    get placed() {
      return placed;
    },
    get booted() {
      return booted;
    },
    get keeper() {
      return keeper;
    },
    /** One reconcile of the service; `machineWaits`: its machine has not changed since the last one. */
    round(elapsedMs: number, machineWaits = false): void {
      now += elapsedMs;
      if (!machineWaits) machineMoves();
      clientsWrite();
      if (service === undefined) return;
      const before = service.status.operationId === null ? undefined : operation;
      for (const step of procedureOf(before).plan(service, observed(), before)) perform(step);
      if (!machineWaits) machineMoves();
      if (service === undefined) return;
      const advanced = advance(service, observed(), before, now, silentLog);
      service = advanced.after;
      if (advanced.operation !== undefined) {
        expect(advanced.operation.status.progressPct).toBeGreaterThanOrEqual(before?.status.progressPct ?? 0);
        operation = advanced.operation;
      }
    },
  };
}
