import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import type { MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { isFinished, type OperationObject } from "@holdfast/controller/operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "@holdfast/controller/services/service/managed-service.ts";
import {
  changePrimary,
  type PrimaryChangeDeps,
} from "@holdfast/controller/services/service/member/primary-replicas/change-primary.ts";
import { restartsOf } from "@holdfast/controller/services/service/member/restarts.ts";
import { switchOver } from "@holdfast/controller/services/service/member/primary-replicas/switch-over.ts";
import type { ObservedService, ServiceStep } from "@holdfast/controller/services/service/reconcile/observed-service.ts";
import { procedureOf } from "@holdfast/controller/services/service/procedure/procedures.ts";
import { advance } from "@holdfast/controller/services/service/reconcile/service-advance.ts";
import { desiredImages } from "@holdfast/controller/services/service/canary/node-image.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { runningMachine } from "../machines/machine-object.ts";
import { runningService } from "./service-object.ts";
import { namedPrimary } from "@holdfast/controller/services/service/member/primary-replicas/primary.ts";

interface Settings {
  readonly generation: number;
  readonly primary: string;
  readonly restarts: number;
  readonly running: boolean;
}

interface Member {
  machine: MachineObject;
  settings: Settings | undefined;
  /** Settings that its engine started with; undefined while it does not run. */
  runs: { readonly restarts: number; readonly image: string } | undefined;
  data: "primary" | "follower" | "none";
  /** Last report of the member's agent. */
  reported: ObservedService["nodes"][number]["instance"];
}

interface Snapshot {
  readonly object: ManagedServiceObject;
  readonly operation: OperationObject | undefined;
  readonly observed: ObservedService;
}

class Stale extends Error {}

/** Part of the report of an engine that runs without a parameter. */
export const rejection = { rejectedParameters: { shared_buffers: "must be less than the memory" } } as const;

/**
 * A service of several nodes under the real plan and its procedures, with agents and machines that take one step at a
 * time; a controller may act on an old view. Images named `bad` have no engine that starts.
 */
export class RollingScenario {
  object: ManagedServiceObject;
  operation: OperationObject | undefined;
  readonly members = new Map<string, Member>();
  now = 1_000_000;
  /** Maximum number of nodes at one time whose engine was down because of an order. */
  maxDown = 0;
  /** Maximum number of engines that accepted writes at one time. */
  maxWriters = 0;
  readonly events: string[] = [];
  readonly deletedMembers = new Set<string>();
  /** Number of starts of each machine. */
  readonly starts = new Map<string, number>();
  /** Members whose engine begins to start with the next restart, and never completes it. */
  readonly hanging = new Set<string>();
  /** True if each engine rejects a parameter that it reads at its next restart. */
  rejects = false;
  private seen: Snapshot | undefined;

  constructor(ids: readonly string[]) {
    const nodes = ids.map((id, index) => ({ id, hostname: `${id}.local`, zone: "local", number: index + 1 }));
    const spec = { nodes, nextNodeNumber: ids.length + 1, image: "old" };
    const statuses = ids.map((id) => ({ id, status: "Running", address: "a", publicAddress: "a" }) as const);
    this.object = runningService({}, spec, { primaryNodeId: ids[0] ?? "", nodes: statuses });
    for (const id of ids) {
      const member = this.newMember(id);
      this.members.set(id, { ...member, data: id === ids[0] ? "primary" : "follower" });
      this.take(id, this.object);
      this.tick(id);
    }
    this.maxDown = 0;
  }

  /** Begins an operation as the API does. */
  begin(change: { readonly after: ManagedServiceObject; readonly operation: OperationObject }): void {
    [this.object, this.operation] = [change.after, change.operation];
  }

  observe(): ObservedService {
    const nodes = this.object.spec.nodes.map((node) => {
      const member = this.members.get(node.id);
      const up = member?.machine.status.state === "running";
      return {
        node,
        ...(node.id !== this.object.status.primaryNodeId && { isReplica: true as const }),
        machine: member?.machine,
        connected: up,
        isCurrent: up && member.reported !== undefined,
        instance: member?.reported,
        stoppedForDrain: false,
        silentHost: undefined,
        ...(this.deletedMembers.has(node.id) && { mustMove: true as const }),
      };
    });
    return { nodes, names: "verified", isChanging: false };
  }

  refreshView(): void {
    this.seen = { object: this.object, operation: this.operation, observed: this.observe() };
  }

  /** A controller takes all pending steps, by its current view or, when it was paused, by its old one. */
  async control(isPaused = false): Promise<void> {
    if (!isPaused || this.seen === undefined) this.refreshView();
    const { object, operation, observed } = this.seen as Snapshot;
    const put = (after: ManagedServiceObject, next = operation) => {
      if (object !== this.object) throw new Stale();
      [this.object, this.operation] = [after, next];
    };
    try {
      const open = operation === undefined || isFinished(operation) ? undefined : operation;
      for (const step of procedureOf(open).plan(object, observed, open))
        await this.perform(step, object, observed, put);
      if (object !== this.object) return;
      const written = advance(object, this.observe(), open, this.now, silentLog);
      for (const { type } of written.events) this.events.push(type);
      if (written.after !== object || written.operation !== open) put(written.after, written.operation ?? operation);
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
    }
  }

  /** Takes the next step of a machine and its agent. */
  tick(id: string): void {
    const member = this.members.get(id);
    if (member === undefined) return;
    const { spec, status, metadata } = member.machine;
    if (metadata.deletionRequestedAt !== undefined) return void this.members.delete(id);
    const state = spec.power === "on" ? "running" : "stopped";
    if (state !== status.state) {
      if (state === "running") this.starts.set(id, (this.starts.get(id) ?? 0) + 1);
      member.runs = undefined;
      member.reported = undefined;
      member.machine = { ...member.machine, status: { ...status, state } };
      return;
    }
    if (state === "stopped" || member.settings === undefined) return;
    this.runEngine(id, member, member.settings);
    this.applySettings(id, member, member.settings);
    this.count();
  }

  /** Crashes the engine; its agent starts it again. */
  crash(id: string): void {
    const member = this.members.get(id);
    if (member !== undefined) member.runs = undefined;
  }

  private runEngine(id: string, member: Member, { primary, restarts, running }: Settings): void {
    if (!running || primary === "") return void (member.runs = undefined);
    if (member.runs !== undefined && member.runs.restarts < restarts) return void (member.runs = undefined);
    if (member.runs === undefined && this.hanging.has(id)) return;
    if (primary === id) {
      if (member.data === "none" || member.machine.spec.image === "bad") return;
      member.runs ??= { restarts, image: member.machine.spec.image };
      member.data = "primary";
      return;
    }
    if (member.data !== "follower") {
      member.runs = undefined;
      const from = this.members.get(primary);
      if (from?.runs === undefined || from.data !== "primary") return;
      member.data = "follower";
    }
    if (member.machine.spec.image !== "bad") member.runs ??= { restarts, image: member.machine.spec.image };
  }

  private applySettings(id: string, member: Member, { generation, primary, restarts, running }: Settings): void {
    const wantsNone = !running || primary === "";
    const isUp = member.runs !== undefined && (primary !== id || member.data === "primary");
    const isBad = member.machine.spec.image === "bad";
    const role = member.data === "primary" ? "primary" : "replica";
    member.reported = create(InstanceObservationSchema, {
      state: wantsNone ? "stopped" : isUp ? "running" : isBad ? "failed" : "starting",
      reason: isBad ? "no engine" : "",
      since: { seconds: BigInt(Math.floor(this.now / 1_000)) - 20n, nanos: 0 },
      generation: BigInt(generation),
      restartCount: BigInt(restarts),
      engineVersion: member.runs?.image === "new" ? "17.1" : "17.0",
      checks: [{ name: "liveness", status: "healthy" }],
      ...(this.rejects && member.runs !== undefined && member.runs.restarts > 0 && rejection),
      replication: wantsNone
        ? { role, dataRole: role, stoppedAt: member.data === "primary" ? "0/8" : "" }
        : { role, state: role === "replica" && isUp ? "streaming" : "" },
    });
  }

  private count(): void {
    const writers = [...this.members].filter(([id, { runs, data, settings }]) => {
      return runs !== undefined && data === "primary" && settings?.primary === id;
    });
    this.maxWriters = Math.max(this.maxWriters, writers.length);
    const isEstablished = ({ joining, leaving }: NodeSpec) => joining !== true && leaving !== true;
    const down = this.object.spec.nodes
      .filter(isEstablished)
      .filter(({ id }) => this.members.get(id)?.runs === undefined);
    this.maxDown = Math.max(this.maxDown, down.length);
  }

  private newMember(id: string): Member {
    const images = { image: this.object.spec.image, power: "on" } as const;
    return {
      machine: runningMachine(id, images),
      settings: undefined,
      runs: undefined,
      data: "none",
      reported: undefined,
    };
  }

  private take(
    id: string,
    { spec, status, metadata }: ManagedServiceObject,
    running = true,
    generation?: number,
  ): void {
    const member = this.members.get(id);
    const next = {
      generation: generation ?? spec.instanceGeneration,
      primary: namedPrimary({ spec, status, metadata } as ManagedServiceObject),
      restarts: restartsOf(spec, { id }).delivered,
      running,
    };
    if (member === undefined || member.machine.status.state !== "running") return;
    if (next.generation >= (member.settings?.generation ?? 0)) member.settings = next;
  }

  private async perform(
    step: ServiceStep,
    object: ManagedServiceObject,
    observed: ObservedService,
    put: (after: ManagedServiceObject) => void,
  ): Promise<void> {
    const { signal } = new AbortController();
    const service = { object, modRevision: 1n } as never;
    // Old settings arrive late as well; all other tasks are rejected.
    if (step.kind === "converge") return this.take(step.node.id, object, step.running, step.generation);
    if (object !== this.object) throw new Stale();
    const member = "node" in step ? this.members.get(step.node.id) : undefined;
    const machine = (change: Partial<MachineObject["spec"]>) => {
      if (member !== undefined) member.machine = { ...member.machine, spec: { ...member.machine.spec, ...change } };
    };
    if (step.kind === "createMachine") this.members.set(step.node.id, this.newMember(step.node.id));
    else if (step.kind === "powerMachine") machine({ power: step.power });
    else if (step.kind === "installImage") machine({ ...desiredImages(object), power: "on" });
    else if (step.kind === "deleteMachine" && member !== undefined)
      member.machine = { ...member.machine, metadata: { ...member.machine.metadata, deletionRequestedAt: this.now } };
    else if (step.kind === "removeNode")
      put({ ...object, spec: { ...object.spec, nodes: object.spec.nodes.filter(({ id }) => id !== step.node.id) } });
    else if (step.kind === "changePrimary") await changePrimary(service, observed, this.deps(put), signal);
    else if (step.kind === "switchOver") await switchOver(service, step.to, this.deps(put), signal);
  }

  private deps(put: (after: ManagedServiceObject) => void): PrimaryChangeDeps {
    return {
      begin: () => ({ update: (_: unknown, __: unknown, after: never) => put(after), commit: async () => 0n }) as never,
      services: { untilRevision: async () => undefined } as never,
      clock: { now: () => this.now, monotonicMs: () => this.now } as never,
      failureDetector: { leaseReport: () => undefined, trueForMs: () => 0, forget: () => undefined },
      fences: { fence: async () => false },
      machines: { get: () => undefined },
      fleet: {
        revokePrimaryLease: async () => undefined,
        run: async (id: string) => {
          const member = this.members.get(id);
          if (member?.runs === undefined) throw new Error("no answer");
          const role = member.data === "primary" ? "primary" : "replica";
          const value = {
            role,
            position: "0/10",
            replayedPosition: "0/10",
            timeline: 1,
            streaming: role === "replica",
          };
          return { output: { case: "readReplication", value } } as never;
        },
      },
    };
  }
}
