import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import type { MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { isFinished, type OperationObject } from "@holdfast/controller/operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "@holdfast/controller/services/service/managed-service.ts";
import { addNodes, markNodeForRemoval } from "@holdfast/controller/services/service/member/change-nodes.ts";
import { isRequiredForService } from "@holdfast/controller/services/service/member/member-roles.ts";
import { numberOf } from "@holdfast/controller/services/service/member/members.ts";
import { beginMove, nodeToMove } from "@holdfast/controller/services/service/member/move-node.ts";
import { firstPeer } from "@holdfast/controller/services/service/member/peers/first-peer.ts";
import { peersOf } from "@holdfast/controller/services/service/member/peers/peer-settings.ts";
import { restartsOf } from "@holdfast/controller/services/service/member/restarts.ts";
import type { ObservedService, ServiceStep } from "@holdfast/controller/services/service/reconcile/observed-service.ts";
import { procedureOf } from "@holdfast/controller/services/service/procedure/procedures.ts";
import type { SpecArgs } from "@holdfast/controller/services/service/spec-args.ts";
import { advance } from "@holdfast/controller/services/service/reconcile/service-advance.ts";
import { requestCommand } from "@holdfast/controller/services/service/service-commands.ts";
import { type InstanceObservation, InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { runningMachine } from "../machines/machine-object.ts";
import { partial } from "../partial.ts";
import { rejection } from "./rolling-scenario.ts";
import { newServiceObject } from "./service-object.ts";

interface Settings {
  readonly generation: number;
  readonly restarts: number;
  readonly running: boolean;
  readonly form: boolean;
  readonly leaving: readonly number[];
  readonly first: readonly number[];
  /** Numbers of the members whose address the settings have. */
  readonly addressed: readonly number[];
}

interface Member {
  readonly number: number;
  machine: MachineObject;
  settings: Settings | undefined;
  /** Restart counter that the engine started with; undefined while the engine does not run. */
  runs: number | undefined;
  isMember: boolean;
  /** Acknowledged writes on the member's disk. */
  writes: number;
  /** True if the member's host is lost, so that no process of it ever responds again. */
  isLost: boolean;
  reported: InstanceObservation | undefined;
}

/**
 * A service of members that elect their leader under the real plan and procedures, with a model of the engine's
 * cluster: a configuration that changes only with a majority, and writes that a majority must have. Agents and machines
 * take one step at a time, and a controller may act on an old view.
 */
export class PeersScenario {
  object: ManagedServiceObject;
  operation: OperationObject | undefined;
  readonly members = new Map<string, Member>();
  /** Numbers of the cluster's members; empty until it is formed. */
  cluster: number[] = [];
  now = 1_000_000;
  /** Acknowledged writes. */
  acknowledged = 0;
  /** Number of stops that an agent refused because the cluster needed the member. */
  refusedStops = 0;
  readonly violations: string[] = [];
  /** True if each engine rejects a parameter that it reads at its next restart. */
  rejects = false;
  /** Members whose engine fails when it starts again. */
  readonly failing = new Set<string>();
  /** Members whose engine begins to start again, and never completes it. */
  readonly hanging = new Set<string>();
  readonly numbersUsed = new Set<number>();
  /** Numbers of the first members, which form the cluster. */
  private readonly forming: readonly number[];
  private readonly drained = new Map<number, number>();
  private ids = 0;
  private seen: { readonly object: ManagedServiceObject; readonly observed: ObservedService } | undefined;

  /** `arranged` may change the initial nodes, which are those of a service that all its members form together. */
  constructor(count: number, arranged: (nodes: NodeSpec[]) => NodeSpec[] = (nodes) => nodes) {
    const { service, operation } = newServiceObject();
    const first = Array.from({ length: count }, (_, index): NodeSpec => {
      const number = index + 1;
      return firstPeer({ id: `n-${number}`, hostname: `db-${number}.local`, zone: "local", number });
    });
    const nodes = arranged(first);
    this.forming = nodes.flatMap(({ forms, number = 0 }) => (forms === true ? [number] : []));
    const spec = { ...service.spec, databaseType: "valkey", nodes, nextNodeNumber: count + 1 };
    const status = nodes.map(({ id }) => ({ id, status: "Provisioning", address: "", publicAddress: "" }) as const);
    this.object = { ...service, spec, status: { ...service.status, primaryNodeId: "", nodes: status } };
    this.operation = operation;
  }

  get isBusy(): boolean {
    return this.object.status.operationId !== null;
  }

  private up(): Member[] {
    const running = [...this.members.values()].filter(({ runs, isMember }) => runs !== undefined && isMember);
    return running.filter(({ number }) => this.cluster.includes(number));
  }

  hasMajority(without?: Member): boolean {
    return 2 * this.up().filter((member) => member !== without).length > this.cluster.length;
  }

  private leader(): Member | undefined {
    if (!this.hasMajority()) return undefined;
    return this.up().toSorted((a, b) => b.writes - a.writes || a.number - b.number)[0];
  }

  /** Begins a request of a user; a rejected request changes nothing. */
  request(kind: "restart" | "add" | "remove"): void {
    if (this.isBusy || this.object.status.state !== "Running") return;
    const args = { operationId: `op-${(this.ids += 1)}`, now: this.now };
    try {
      if (kind === "restart") {
        const outcome = requestCommand(this.object, "restart", undefined, args);
        if (outcome.kind === "change") [this.object, this.operation] = [outcome.after, outcome.operation];
        return;
      }
      const { nodes, nextNodeNumber = 0 } = this.object.spec;
      const last = nodes.at(-1) as NodeSpec;
      // A cluster has no two members, so a single one is joined by two.
      const numbers = nodes.length === 1 ? [nextNodeNumber, nextNodeNumber + 1] : [nextNodeNumber];
      const change =
        kind === "add"
          ? addNodes(this.object, { ...args, nodeIds: numbers.map((number) => `n-${number}`), zone: undefined })
          : markNodeForRemoval(this.object, last, args);
      [this.object, this.operation] = [change.after, change.operation];
    } catch (error) {
      if (!(error as Error).message.includes("nodes")) throw error;
    }
  }

  /** Crashes the engine of a member; its agent starts it again. */
  crash(id: string): void {
    const member = this.members.get(id);
    if (member !== undefined) member.runs = undefined;
  }

  /** Loses the host of a member, if the cluster can spare that member. */
  lose(id: string): void {
    const member = this.members.get(id);
    const spare = member !== undefined && this.hasMajority(member) && this.up().length === this.cluster.length;
    if (!spare || [...this.members.values()].some(({ isLost }) => isLost)) return;
    member.isLost = true;
    member.runs = undefined;
  }

  observe(): ObservedService {
    const nodes = this.object.spec.nodes.map((node) => {
      const member = this.members.get(node.id);
      const connected = member !== undefined && !member.isLost && member.machine.status.state === "running";
      return {
        node,
        ...(!isRequiredForService(this.object, node) && { isReplica: true as const }),
        machine: member?.machine,
        connected,
        isCurrent: connected && member.reported !== undefined,
        instance: member?.reported,
        stoppedForDrain: false,
        silentHost: member?.isLost === true ? "host" : undefined,
        ...(member?.isLost === true && { mustMove: true as const, disconnectedMs: 60_000 }),
      };
    });
    return { nodes, names: "verified", isChanging: false };
  }

  refreshView(): void {
    this.seen = { object: this.object, observed: this.observe() };
  }

  /** A controller takes all pending steps, by its current view or, when it was paused, by its old one. */
  control(isPaused = false): void {
    if (!isPaused || this.seen === undefined) this.refreshView();
    const { object, observed } = this.seen as NonNullable<typeof this.seen>;
    const open = this.operation === undefined || isFinished(this.operation) ? undefined : this.operation;
    for (const step of procedureOf(open).plan(object, observed, open)) this.perform(step, object);
    // Every write is conditional on the service being unchanged.
    if (object !== this.object) return;
    const node = nodeToMove(object, this.observe());
    if (node !== undefined) {
      const nodeId = `n-${object.spec.nextNodeNumber}`;
      const started = beginMove(object, node, { nodeId, operationId: `op-${(this.ids += 1)}`, now: this.now });
      [this.object, this.operation] = [started.after, started.operation];
      return;
    }
    const written = advance(object, this.observe(), open, this.now, silentLog);
    this.object = written.after;
    this.operation = written.operation ?? this.operation;
  }

  private perform(step: ServiceStep, object: ManagedServiceObject): void {
    if (step.kind === "converge") return this.take(step.node, object, step.running, step.generation);
    if (object !== this.object || !("node" in step)) return;
    const member = this.members.get(step.node.id);
    if (step.kind === "createMachine") {
      const number = numberOf(step.node);
      if (this.numbersUsed.has(number)) this.violations.push(`number ${number} is used again`);
      this.numbersUsed.add(number);
      const machine = runningMachine(step.node.id, { software: { name: "valkey", version: "17" }, power: "on" });
      const none = { settings: undefined, runs: undefined, isMember: false, writes: 0, isLost: false };
      this.members.set(step.node.id, { number, machine, reported: undefined, ...none });
    } else if (step.kind === "deleteMachine" && member !== undefined) {
      if (this.cluster.includes(member.number)) this.violations.push(`machine of member ${member.number} is deleted`);
      this.members.delete(step.node.id);
    } else if (step.kind === "removeNode") {
      const nodes = object.spec.nodes.filter(({ id }) => id !== step.node.id);
      this.object = { ...object, spec: { ...object.spec, nodes } };
    } else if (step.kind === "powerMachine" && member !== undefined) {
      this.violations.push(`machine of member ${member.number} is stopped`);
    }
  }

  private take(node: NodeSpec, object: ManagedServiceObject, running: boolean, generation: number): void {
    const member = this.members.get(node.id);
    if (member === undefined || member.isLost || generation < (member.settings?.generation ?? 0)) return;
    const peers = peersOf(
      partial<SpecArgs>({ service: object, node, addressOf: (id) => (this.members.has(id) ? "a" : "") }),
    );
    member.settings = {
      generation,
      running,
      restarts: restartsOf(object.spec, node).delivered,
      form: peers.form,
      leaving: peers.leaving,
      first: peers.members.map(({ number }) => number),
      addressed: peers.members.filter(({ address }) => address !== "").map(({ number }) => number),
    };
    const joining = [...this.members.values()].filter(
      ({ isMember, settings }) => !isMember && settings?.form === false,
    );
    if (joining.length > 1) this.violations.push("two members join at the same time");
  }

  /** Takes the next step of a member's agent and engine. */
  tick(id: string): void {
    const member = this.members.get(id);
    if (member === undefined || member.isLost || member.settings === undefined) return;
    const { settings } = member;
    if (!member.isMember) this.becomeMember(member, settings);
    else if (member.runs === undefined) this.start(id, member, settings);
    else if (member.runs < settings.restarts) this.restart(member);
    this.write();
    if (this.leader() === member) this.removeNext(settings);
    this.report(id, member, settings);
  }

  private start(id: string, member: Member, { restarts }: Settings): void {
    if (!this.failing.has(id) && !this.hanging.has(id)) member.runs = restarts;
  }

  private becomeMember(member: Member, { form, first, restarts }: Settings): void {
    if (form) {
      if (this.cluster.length > 0 && !this.cluster.includes(member.number)) this.violations.push("a second cluster");
      if (this.acknowledged > 0 && member.writes === 0 && this.object.status.cluster?.formed === true)
        this.violations.push(`member ${member.number} forms a cluster that exists`);
      const own = first.filter((number) => this.forming.includes(number));
      this.cluster = this.cluster.length === 0 ? own : this.cluster;
    } else {
      if (!this.hasMajority()) return;
      if (!this.cluster.includes(member.number)) this.cluster = [...this.cluster, member.number];
    }
    member.isMember = true;
    member.runs = restarts;
  }

  private restart(member: Member): void {
    if (this.cluster.length > 1 && !this.hasMajority(member)) {
      this.refusedStops += 1;
      return;
    }
    member.runs = undefined;
  }

  /** A write is acknowledged once a majority has it; members that are up receive all earlier ones. */
  private write(): void {
    const leader = this.leader();
    if (leader === undefined) return;
    if (leader.writes < this.acknowledged)
      this.violations.push(`the leader lacks ${this.acknowledged - leader.writes} writes`);
    this.acknowledged += 1;
    for (const member of this.up()) member.writes = this.acknowledged;
  }

  private removeNext({ leaving }: Settings): void {
    const number = leaving.find((each) => this.cluster.includes(each));
    if (number === undefined) return;
    const rounds = this.drained.get(number) ?? 0;
    this.drained.set(number, rounds + 1);
    if (rounds < 2) return;
    const remaining = this.cluster.filter((each) => each !== number);
    const isMajority = 2 * this.up().filter((member) => member.number !== number).length > remaining.length;
    if (isMajority) this.cluster = remaining;
  }

  private report(id: string, member: Member, settings: Settings): void {
    const isUp = member.runs !== undefined;
    // A member reaches those whose address its settings have.
    const reached = this.up().filter(({ number }) => settings.addressed.includes(number));
    const hasMajority = 2 * reached.length > this.cluster.length && this.cluster.includes(member.number);
    const isSpare = (number: number) => {
      const found = [...this.members.values()].find((each) => each.number === number);
      return this.cluster.length === 1 || this.hasMajority(found);
    };
    member.reported = create(InstanceObservationSchema, {
      state: isUp ? "running" : this.failing.has(id) ? "failed" : "starting",
      since: { seconds: BigInt(Math.floor(this.now / 1_000)) - (this.failing.has(id) ? 20n : 0n), nanos: 0 },
      generation: BigInt(settings.generation),
      restartCount: BigInt(member.runs ?? settings.restarts),
      engineVersion: "17.0",
      checks: ["liveness", "quorum"].map((name) => ({ name, status: "healthy" })),
      ...(this.rejects && member.runs !== undefined && member.runs > 0 && rejection),
      ...(isUp && {
        peers: {
          isMember: member.isMember,
          isLeader: this.leader() === member,
          voters: this.cluster.length,
          reachableVoters: this.up().length,
          hasMajority,
          inSync: member.writes === this.acknowledged,
          members: [...this.cluster],
          safeToRestart: hasMajority ? this.cluster.filter(isSpare) : [],
        },
      }),
    });
  }

  /** Runs all parts alternately without another fault. */
  settle(rounds: number, roundMs = 1_000): void {
    for (let round = 0; round < rounds; round += 1) {
      this.now += roundMs;
      this.control();
      for (const id of this.members.keys()) this.tick(id);
    }
  }
}
