import { create } from "@bufbuild/protobuf";
import type { ManagedServiceObject } from "@holdfast/controller/services/service/managed-service.ts";
import { planManagedService } from "@holdfast/controller/services/service/reconcile/managed-service-plan.ts";
import {
  changePrimary,
  type PrimaryChangeDeps,
} from "@holdfast/controller/services/service/member/primary-replicas/change-primary.ts";
import { updateMembers } from "@holdfast/controller/services/service/member/primary-replicas/update-members.ts";
import type { ObservedService } from "@holdfast/controller/services/service/reconcile/observed-service.ts";
import { type InstanceObservation, InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { runningMachine } from "../machines/machine-object.ts";
import { newServiceObject } from "./service-object.ts";
import { namedPrimary } from "@holdfast/controller/services/service/member/primary-replicas/primary.ts";
import { failOver } from "@holdfast/controller/services/service/member/primary-replicas/primary-commands.ts";

export const nodeIds = ["a", "b"] as const;
export type NodeId = (typeof nodeIds)[number];

/** Settings that determine a member's role. */
interface Settings {
  readonly generation: number;
  readonly primary: string;
}

/** One member with its disk. */
interface Member {
  settings: Settings;
  data: "primary" | "follower";
  rows: number[];
  up: boolean;
  /** True if the engine's last shutdown was clean. */
  isCleanlyShutDown: boolean;
  /** True while the agent runs. */
  alive: boolean;
  /** True while controllers receive its reports. */
  connected: boolean;
  /** True if its engine ends recovery when it is promoted. */
  promotes: boolean;
  reported: InstanceObservation | undefined;
}

interface Snapshot {
  readonly object: ManagedServiceObject;
  readonly modRevision: number;
  readonly observed: ObservedService;
}

/** The state changed between a controller's decision and its write. */
class Stale extends Error {}

/**
 * Two members of one service, their agents by the real rules, and controllers with the real code: messages arrive late
 * and repeatedly, and a controller may act on an old view.
 */
export class PrimaryChangeScenario {
  private readonly facts = new Map<string, number>();
  object: ManagedServiceObject;
  readonly members: Record<NodeId, Member>;
  readonly acknowledged: number[] = [1];
  now = 0;
  private modRevision = 1;
  private seen: Snapshot | undefined;
  private readonly sent: { readonly to: NodeId; readonly settings: Settings }[] = [];

  constructor() {
    const { service } = newServiceObject();
    const nodes = nodeIds.map((id, index) => ({ id, hostname: `${id}.local`, zone: "local", number: index + 1 }));
    const status = { ...service.status, primaryNodeId: "a", operationId: null, state: "Running" } as const;
    this.object = { ...service, spec: { ...service.spec, nodes, nextNodeNumber: 3 }, status };
    const settings = { generation: service.spec.instanceGeneration, primary: "a" };
    const member = (data: Member["data"]): Member => ({
      settings,
      data,
      rows: [1],
      up: true,
      isCleanlyShutDown: true,
      alive: true,
      connected: true,
      promotes: true,
      reported: undefined,
    });
    this.members = { a: member("primary"), b: member("follower") };
    for (const id of nodeIds) this.tick(id);
  }

  writable(): NodeId[] {
    return nodeIds.filter((id) => {
      const { up, data, settings } = this.members[id];
      return up && data === "primary" && settings.primary === id;
    });
  }

  write(): void {
    for (const id of this.writable()) {
      const row = this.acknowledged.length + 1;
      this.members[id].rows.push(row);
      this.acknowledged.push(row);
    }
  }

  /** Requests a failover to the current replica, as a user does. */
  requestFailover(): void {
    const replica = this.object.spec.nodes.find(({ id }) => id !== this.object.status.primaryNodeId);
    if (this.object.spec.primaryChange !== undefined || replica === undefined) return;
    this.put(this.object, failOver(this.object, replica, { operationId: "op", now: this.now }).after);
  }

  /** Runs the agent: it applies its settings, and reports the result. */
  tick(id: NodeId): void {
    const member = this.members[id];
    if (!member.alive) return;
    const { primary, generation } = member.settings;
    if (primary === "") this.stop(member, true);
    else if (primary === id) {
      member.up = true;
      if (member.data === "follower" && member.promotes) member.data = "primary";
    } else this.follow(member, primary as NodeId);
    if (!member.connected) return;
    const isRunning = member.up && (primary !== id || member.data === "primary");
    member.reported = create(InstanceObservationSchema, {
      state: primary === "" ? "stopped" : isRunning ? "running" : "starting",
      generation: BigInt(generation),
      replication: this.replicationOf(member),
    });
  }

  /** Kills the engine; its agent starts it again at its next check. */
  crash(id: NodeId): void {
    this.stop(this.members[id], false);
  }

  /** Delivers an old message, possibly again. */
  deliver(index: number): void {
    const message = this.sent[index % Math.max(1, this.sent.length)];
    if (message !== undefined) this.take(message.to, message.settings);
  }

  refreshView(): void {
    this.seen = { object: this.object, modRevision: this.modRevision, observed: this.observe() };
  }

  /** A controller takes all pending steps, by its current view or, when it was paused, by its old one. */
  async control(isPaused = false): Promise<void> {
    if (!isPaused || this.seen === undefined) this.refreshView();
    const { object, modRevision, observed } = this.seen as Snapshot;
    const service = { object, modRevision } as never;
    const update = (after: ManagedServiceObject) => {
      if (modRevision !== this.modRevision) throw new Stale();
      this.put(object, after);
    };
    try {
      for (const step of planManagedService(object, observed)) {
        if (step.kind === "converge") this.send(step.node.id as NodeId, object);
        if (step.kind === "changePrimary")
          await changePrimary(service, observed, this.deps(update), new AbortController().signal);
      }
      const settled = updateMembers(object, observed, this.now).service;
      if (settled !== object) update(settled);
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
    }
  }

  private put(before: ManagedServiceObject, after: ManagedServiceObject): void {
    if (before !== this.object) throw new Stale();
    this.object = after;
    this.modRevision += 1;
  }

  private send(to: NodeId, object: ManagedServiceObject): void {
    const settings = { generation: object.spec.instanceGeneration, primary: namedPrimary(object) };
    this.sent.push({ to, settings });
    if (this.members[to].connected) this.take(to, settings);
  }

  private take(to: NodeId, settings: Settings): void {
    const member = this.members[to];
    if (member.alive && settings.generation >= member.settings.generation) member.settings = settings;
  }

  private stop(member: Member, isClean: boolean): void {
    if (member.up) member.isCleanlyShutDown = isClean;
    member.up = false;
  }

  /** A replica's data follow only a history that they are a part of. */
  private follow(member: Member, primary: NodeId): void {
    const isThere = this.writable().includes(primary);
    if (member.data === "primary") member.up = false;
    if (isThere) member.data = "follower";
    if (member.data !== "follower") return;
    member.up = true;
    if (isThere) member.rows = [...this.members[primary].rows];
  }

  private replicationOf({ up, data, isCleanlyShutDown, rows }: Member) {
    if (up) return { role: data === "primary" ? "primary" : "replica" };
    if (data === "follower") return { role: "replica", dataRole: "replica" };
    // The shutdown record begins where the last row ends.
    return {
      role: "primary",
      dataRole: "primary",
      stoppedAt: isCleanlyShutDown ? `0/${(rows.length * 16 - 8).toString(16)}` : "",
    };
  }

  private observe(): ObservedService {
    const nodes = this.object.spec.nodes.map((node) => {
      const { alive, connected, reported } = this.members[node.id as NodeId];
      return {
        node,
        machine: runningMachine(node.id, {}),
        connected: alive && connected,
        isCurrent: alive && connected,
        instance: reported,
        stoppedForDrain: false,
        silentHost: undefined,
      };
    });
    return { nodes, names: "verified", isChanging: false };
  }

  /** Other dependencies of the real code: a store of one object, and agents that report their positions. */
  private deps(update: (after: ManagedServiceObject) => void): PrimaryChangeDeps {
    return {
      begin: () =>
        ({ update: (_: unknown, __: unknown, after: never) => update(after), commit: async () => 0n }) as never,
      services: { untilRevision: async () => undefined } as never,
      clock: { now: () => this.now, monotonicMs: () => this.now } as never,
      failureDetector: {
        leaseReport: () => undefined,
        trueForMs: (fact) => {
          const since = this.facts.get(fact) ?? this.now;
          this.facts.set(fact, since);
          return this.now - since;
        },
        forget: (fact) => void this.facts.delete(fact),
      },
      fences: { fence: async () => false },
      machines: { get: () => undefined },
      fleet: {
        revokePrimaryLease: async () => undefined,
        run: async (id: string) => {
          const { alive, connected, rows, data, up } = this.members[id as NodeId];
          if (!alive || !connected || !up) throw new Error("no answer");
          const value = {
            role: data === "primary" ? "primary" : "replica",
            replayedPosition: `0/${(rows.length * 16).toString(16)}`,
          };
          return { output: { case: "readReplication", value } } as never;
        },
      },
    };
  }
}
