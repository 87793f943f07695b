import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  CheckSchema,
  type InstanceObservation,
  InstanceObservationSchema,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineCheck, EngineObservation } from "../engines/engine-driver.ts";
import type { CollationLook } from "./collation-check.ts";

export type InstanceState = "absent" | "preparing" | "starting" | "running" | "stopping" | "stopped" | "failed";

/** What is told of the instance, put together from what its parts report. Calls back when something material changed. */
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
  /** An engine that does not run has nothing to check. */
  dropChecks(...names: string[]): void;
  /** A look at the engine begins now; the number orders it among all others. */
  looks(): number;
  /** What a look found. One that began before another that is told already is old; one without an answer tells no settings. */
  observed(observation: EngineObservation, look: number): void;
  measured(dataBytes: number, freeBytes: number): void;
  /** Metrics that cannot be told here, each with the reason. */
  cannotTell(metrics: Readonly<Record<string, string>>): void;
  /** The engine shows a certificate that was issued by authorities of this generation. */
  showsCertificate(authorityGeneration: number): void;
  readonly pendingRestart: readonly string[];
  /** Storage that was asked for; undefined until an instance was. */
  readonly storageBytes: number | undefined;
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
  let bytes = { dataBytes: 0, freeBytes: 0 };
  let certificateGeneration = 0;
  let absentMetrics: Readonly<Record<string, string>> = {};
  let textLibraries: readonly string[] = [];
  let told = "";
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
      for (const name of names) checks.delete(name);
      settle();
    },
    looks: () => (looks += 1),
    observed(observation, look) {
      if (look < newestLook || observation.version === "") return;
      newestLook = look;
      engine = observation;
      settle();
    },
    measured(dataBytes, freeBytes) {
      bytes = { dataBytes, freeBytes };
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
        dataBytes: BigInt(Math.round(bytes.dataBytes)),
        freeBytes: BigInt(Math.round(bytes.freeBytes)),
        engineVersion: engine?.version ?? "",
        certificateGeneration: BigInt(certificateGeneration),
        absentMetrics: { ...absentMetrics },
        textLibraries: [...textLibraries],
        keptGeneration,
      });
    },
  };
}
