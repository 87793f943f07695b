import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  CheckSchema,
  type InstanceObservation,
  InstanceObservationSchema,
  ReplicationObservationSchema,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineCheck, EngineObservation } from "../engines/engine-driver.ts";
import type { DiscardedLog, FollowingState, LogicalSlot, StoppedAt } from "../engines/replication-facet.ts";
import type { DiskSpace } from "../os/disk-space.ts";
import type { CollationLook } from "./collation-check.ts";

export type InstanceState = "absent" | "preparing" | "starting" | "running" | "stopping" | "stopped" | "failed";

/** What a member of a service with several is, as far as is known. */
export interface Following {
  readonly role: "primary" | "replica";
  readonly state?: FollowingState;
  readonly copiedBytes?: number;
  /** Of a replica: what it has received. */
  readonly position?: string;
  /** Of a primary that was stopped in order. */
  readonly stoppedAt?: StoppedAt | undefined;
  /** Of a primary that was looked at. */
  readonly logicalSlots?: readonly LogicalSlot[];
  /** Of a stopped engine: whether its data were a primary's, or follow and took no write of its own. */
  readonly dataRole?: "primary" | "replica";
}

/** The worst first. */
const levels: readonly EngineCheck["status"][] = ["unhealthy", "degraded", "healthy"];

/**
 * What is told of the instance, put together from what its parts report. Calls back when something material changed.
 */
export interface InstanceStatus {
  readonly state: InstanceState;
  become(state: InstanceState, reason?: string): void;
  /** The settings that the machine is held to now. */
  heldTo(spec: InstanceSpec, rejected: Readonly<Record<string, string>>): void;
  /** The newest settings that are on the disk. */
  kept(generation: bigint): void;
  /** One check; each has its own source. */
  checked(check: EngineCheck): void;
  /** Which libraries of the image the data depends on for the order of texts, and whether they are those of then. */
  ordersTexts(look: CollationLook): void;
  /** An engine that does not run has nothing to check. Without names: all of them. */
  dropChecks(...names: string[]): void;
  /** A look at the engine begins now; the number orders it among all others. */
  looks(): number;
  /**
   * What a look found. A look that began before one that is told already is dropped; one without an answer changes no
   * settings.
   */
  observed(observation: EngineObservation, look: number): void;
  measured(disk: Pick<DiskSpace, "usedBytes" | "freeBytes" | "totalBytes">): void;
  /** What a member is by its data, while its engine cannot say it. */
  follows(following: Following): void;
  /** What its data had that its primary's have not. */
  discarded(log: DiscardedLog | undefined): void;
  /** From these settings on an engine that takes writes ends with its right; 0n: it does not. */
  fenced(generation: bigint): void;
  /** How full the disk is, and whether writes are blocked for that. */
  fills(level: number, writesBlocked: boolean): void;
  /** The machine's image has a pooler for the engine. */
  offersPooler(offers: boolean): void;
  /** Metrics that cannot be told here, each with the reason. */
  cannotTell(metrics: Readonly<Record<string, string>>): void;
  /** The engine shows a certificate that was issued by authorities of this generation. */
  showsCertificate(authorityGeneration: number): void;
  readonly pendingRestart: readonly string[];
  /** Storage that was asked for; undefined until an instance was. */
  readonly storageBytes: number | undefined;
  /** By all checks; undefined while the engine is off, on its way up or down, or never was. */
  readonly level: EngineCheck["status"] | undefined;
  /** Undefined until an instance was asked for. */
  message(): InstanceObservation | undefined;
}

export function createInstanceStatus(now: () => number, onChange: () => void): InstanceStatus {
  let state: InstanceState = "absent";
  let reason = "";
  let since = now();
  /** Attempts in between do not make an engine that fails again and again a freshly failed one. */
  let failingSince: number | undefined;
  let spec: InstanceSpec | undefined;
  let rejected: Readonly<Record<string, string>> = {};
  let keptGeneration = 0n;
  let engine: EngineObservation | undefined;
  let looks = 0;
  let newestLook = 0;
  let disk: Pick<DiskSpace, "usedBytes" | "freeBytes" | "totalBytes"> = { usedBytes: 0, freeBytes: 0, totalBytes: 0 };
  let storage = { storageLevel: 0, writesBlocked: false };
  let certificateGeneration = 0;
  let offersPooler = false;
  let absentMetrics: Readonly<Record<string, string>> = {};
  let textLibraries: readonly string[] = [];
  let told = "";
  let following: Following | undefined;
  let fencedGeneration = 0n;
  let discardedLog: DiscardedLog | undefined;
  const checks = new Map<string, EngineCheck & { readonly since: number }>();

  /** Sizes move all the time and wait for their turn; everything else is told at once. */
  function settle(): void {
    const material = JSON.stringify([
      state,
      reason,
      String(spec?.generation),
      String(keptGeneration),
      String(spec?.term),
      String(spec?.restartCount),
      rejected,
      engine?.version,
      engine?.pendingRestart,
      engine?.effectiveParameters,
      certificateGeneration,
      absentMetrics,
      textLibraries,
      [following?.role, following?.state, following?.stoppedAt?.position, following?.dataRole],
      String(fencedGeneration),
      discardedLog,
      disk.totalBytes,
      storage,
      offersPooler,
      [...checks.values()],
    ]);
    if (material === told) return;
    told = material;
    onChange();
  }

  function note(check: EngineCheck): void {
    const before = checks.get(check.name);
    checks.set(check.name, { ...check, since: before?.status === check.status ? before.since : now() });
  }

  return {
    get state() {
      return state;
    },
    become(next, because = "") {
      if (next !== state) since = now();
      if (next === "running" || next === "stopped") failingSince = undefined;
      if (next === "failed") since = failingSince ??= since;
      state = next;
      reason = because;
      settle();
    },
    heldTo(next, refusals) {
      spec = next;
      rejected = refusals;
      settle();
    },
    kept(generation) {
      if (generation <= keptGeneration) return;
      keptGeneration = generation;
      settle();
    },
    checked(check) {
      note(check);
      settle();
    },
    ordersTexts({ check, libraries }) {
      textLibraries = libraries;
      note(check);
      settle();
    },
    dropChecks(...names) {
      for (const name of names.length === 0 ? [...checks.keys()] : names) checks.delete(name);
      settle();
    },
    looks: () => (looks += 1),
    observed(observation, look) {
      if (look < newestLook || observation.version === "") return;
      newestLook = look;
      engine = observation;
      // A look that began before the end of the engine knows nothing of its data.
      if (state !== "stopped") following = observation.replication;
      settle();
    },
    measured(space) {
      disk = space;
      settle();
    },
    follows(next) {
      following = next;
      settle();
    },
    discarded(log) {
      discardedLog = log;
      settle();
    },
    fenced(generation) {
      fencedGeneration = generation;
      settle();
    },
    fills(level, isBlocked) {
      storage = { storageLevel: level, writesBlocked: isBlocked };
      settle();
    },
    offersPooler(offers) {
      offersPooler = offers;
      settle();
    },
    cannotTell(metrics) {
      absentMetrics = metrics;
      settle();
    },
    showsCertificate(authorityGeneration) {
      certificateGeneration = authorityGeneration;
      settle();
    },
    get pendingRestart() {
      return engine?.pendingRestart ?? [];
    },
    get storageBytes() {
      return spec === undefined ? undefined : Number(spec.storageBytes);
    },
    get level() {
      if (state === "failed") return "unhealthy";
      if (state !== "running" || checks.size === 0) return undefined;
      const told = new Set([...checks.values()].map((check) => check.status));
      return levels.find((level) => told.has(level));
    },
    message() {
      if (spec === undefined) return undefined;
      return create(InstanceObservationSchema, {
        serviceId: spec.serviceId,
        nodeId: spec.nodeId,
        state,
        since: timestampFromMs(since),
        reason,
        generation: spec.generation,
        term: spec.term,
        restartCount: spec.restartCount,
        checks: [...checks.values()].map((check) =>
          create(CheckSchema, { ...check, since: timestampFromMs(check.since) }),
        ),
        pendingRestart: [...(engine?.pendingRestart ?? [])],
        rejectedParameters: { ...rejected },
        effectiveParameters: { ...engine?.effectiveParameters },
        dataBytes: BigInt(Math.round(disk.usedBytes)),
        freeBytes: BigInt(Math.round(disk.freeBytes)),
        diskBytes: BigInt(Math.round(disk.totalBytes)),
        memoryDataBytes: BigInt(Math.round(engine?.memoryDataBytes ?? 0)),
        ...storage,
        engineVersion: engine?.version ?? "",
        certificateGeneration: BigInt(certificateGeneration),
        absentMetrics: { ...absentMetrics },
        textLibraries: [...textLibraries],
        keptGeneration,
        offersPooler,
        ...(spec.replication &&
          (following !== undefined || fencedGeneration > 0n) && {
            replication: replicationMessage(following, fencedGeneration, discardedLog),
          }),
      });
    },
  };
}

function replicationMessage(
  following: Following | undefined,
  fencedGeneration: bigint,
  discarded: DiscardedLog | undefined,
) {
  const { role, state, copiedBytes = 0, stoppedAt, dataRole, logicalSlots: slots } = following ?? {};
  return create(ReplicationObservationSchema, {
    fencedGeneration,
    ...(discarded && {
      discarded: { ...discarded, bytes: BigInt(discarded.bytes), keptBytes: BigInt(discarded.keptBytes) },
    }),
    ...(slots && { logicalSlots: { slots: slots.map((slot) => ({ ...slot })) } }),
    role: role ?? "",
    state: state ?? "",
    copiedBytes: BigInt(Math.round(copiedBytes)),
    stoppedAt: stoppedAt?.position ?? "",
    stoppedHistory: stoppedAt?.history ?? "",
    dataRole: dataRole ?? "",
  });
}
