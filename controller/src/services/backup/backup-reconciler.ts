import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { backupPrefix } from "@holdfast/common/backup/object-names.ts";
import type { Log } from "@holdfast/common/log.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import {
  type ArchiveObservation,
  CancelBackupSchema,
  StartBackupSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { TaskInput } from "#fleet/task/task.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { findOperation, operationKind, type OperationObject } from "#operation/operation.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import { remainingPauseMs } from "#kernel/runtime/recorded-retry.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ArchiveObject } from "./archive/archive.ts";
import { createBackgroundChecks } from "./background-checks.ts";
import { chainOf, canBeBase } from "./backup-chain.ts";
import { ownObjects, checkBackup } from "./backup-check.ts";
import { type BackupIndex, backupKind, type BackupObject, hasEnded, isClear } from "./backup.ts";
import { type BackupKeyObject, dataKeyMessage, sourceBackup } from "./backup-key.ts";
import { type ObservedBackup, planBackup } from "./backup-plan.ts";
import { advanceBackup, advanceVerification } from "./backup-steps.ts";
import { awaitsLog } from "./log/log-archive.ts";
import { deleteBelow } from "./objects/stored-prefix.ts";
import { storeKeys } from "./objects/stored-key.ts";
import { taskTarget } from "../service/member/member-roles.ts";

export interface BackupWorkDeps {
  readonly backups: Collection<BackupObject>;
  readonly index: BackupIndex;
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly backupKeys: Collection<BackupKeyObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly machines: Pick<Collection<MachineObject>, "get">;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Pick<Fleet, "run" | "session" | "observation" | "subscribe">;
  readonly objects: ObjectStore;
  readonly sealer: Sealer;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

const backupsPerHostMax = 2;
const taskTimeoutMs = 10_000;
const recheckMs = 15_000;
const shortRecheckMs = 1_000;
/** Maximum time for which a manual backup waits for the log's archive to start. */
const logStartTimeoutMs = 30_000;
/** Lifetime of the presigned URLs of an attempt. An abandoned attempt cannot store anything after it. */
const urlLifetimeMs = 3 * 3_600_000;

/**
 * Backups: runs each to completion or failure, verifies it on request, and deletes objects of failed attempts. Key:
 * backup id.
 *
 * `backup-plan.ts` decides the next step from the observed state, `backup-steps.ts` computes the objects that a step
 * writes. The primary's machine uploads the data; the controller starts the attempt (`startBackup`),
 * follows the agent's reports, and reads the stored backup back (`backup-check.ts`) before it is completed.
 */
export function createBackupWork(deps: BackupWorkDeps): ControlLoop {
  const { backups, index, backupKeys, services, operations, fleet, objects, clock, log } = deps;
  /** Tasks that machines refused, by backup id. */
  const refusals = new Map<string, { readonly code: string; readonly message: string }>();
  const listeners = new Set<(id: string) => void>();
  const checks = createBackgroundChecks(log, (id) => {
    for (const wake of listeners) wake(id.slice(id.indexOf("/") + 1));
  });

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const backup = backups.get(id);
    if (backup === undefined) return settled;
    if (backup.object.metadata.deletionRequestedAt !== undefined) return remove(backup, signal);
    if (!hasEnded(backup.object)) return advance(backup, signal);
    if (backup.object.spec.verification !== null) return verify(backup, backup.object.spec.verification, signal);
    return deleteLeftovers(backup, signal);
  }

  async function advance(stored: Stored<BackupObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { object: backup } = stored;
    const now = clock.now();
    const observed = await observe(backup, signal);
    const step = planBackup(backup, observed, now);
    const operation = await findOperation(operations, backup.spec.operationId, signal);
    const after = advanceBackup(backup, operation?.object, step, now);
    if (step.kind === "fail" && backup.status.state === "running") await sendCancel(backup, signal);
    const changed = after.backup !== backup;
    const operationChanged = operation !== undefined && after.operation !== operation.object;
    if (changed || operationChanged) {
      const unit = deps.begin();
      if (changed) unit.update(backupKind, stored, after.backup);
      if (operationChanged && after.operation !== undefined) unit.update(operationKind, operation, after.operation);
      for (const event of after.events) unit.event(event);
      await backups.untilRevision(await unit.commit(signal), 1_000);
      if (after.backup.status.state !== backup.status.state) logTransition(backup, after.backup);
    }
    if ("reason" in step)
      log.info("backup attempt failed", { backup: backup.metadata.id, step: step.kind, reason: step.reason });
    if (step.kind === "requeue") refusals.delete(backup.metadata.id);
    if (step.kind === "start") await start(backup, signal);
    if (step.kind === "check")
      checks.begin(`check/${backup.metadata.id}`, () =>
        checkBackup(requireChain(backup), keyOfBackup(backup), "sample", deps),
      );
    if (step.kind === "begin" || step.kind === "requeue" || step.kind === "stored" || step.kind === "checkLater")
      return again(0, step.kind);
    if (hasEnded(after.backup)) {
      refusals.delete(backup.metadata.id);
      return again(0, "ended");
    }
    if (step.kind === "wait" && step.step === "FollowLog") return again(shortRecheckMs, step.step);
    if (step.kind === "wait" && step.step === "WaitForRetry")
      return again(remainingPauseMs(backup.status.retry, now), step.step);
    return again(step.kind === "start" ? shortRecheckMs * 2 : recheckMs, step.kind);
  }

  async function observe(backup: BackupObject, signal: AbortSignal): Promise<ObservedBackup> {
    const { serviceId } = backup.spec;
    const service = (services.get(serviceId) ?? (await services.getCurrent(serviceId, signal)))?.object;
    const machineId = service === undefined ? undefined : taskTarget(service).id;
    const session = machineId === undefined ? undefined : fleet.session(machineId);
    const observation = machineId === undefined ? undefined : fleet.observation(machineId);
    const isCurrent = session !== undefined && observation?.bootId === session.bootId;
    const report = isCurrent ? observation?.instance?.backup : undefined;
    const isThis = report?.backupId === backup.metadata.id && report.attempt === backup.status.attempt;
    const base = get(backup.spec.baseId);
    const isRestoring = service?.spec.origin?.finishedAt === null;
    return {
      service,
      machineId,
      isUp: isCurrent && observation?.instance?.state === "running" && !isRestoring,
      hasCurrentSettings: Number(observation?.instance?.generation ?? 0n) >= (service?.spec.instanceGeneration ?? 0),
      isNext: isNext(backup),
      hasCapacity: hasCapacity(machineId),
      isLogAwaited: isAwaitingLog(backup, observation?.instance.archive),
      hasBase: base !== undefined && service !== undefined && canBeBase(base, service, get),
      report: isThis ? report : undefined,
      refusal: refusals.get(backup.metadata.id),
      check: backup.status.state === "verifying" ? checks.poll(`check/${backup.metadata.id}`) : undefined,
    };
  }

  /**
   * True if the backup waits for the log's archive to start: a manual backup before the first automated one. Automated
   * backups are created only after the archive started.
   */
  function isAwaitingLog({ metadata, spec }: BackupObject, report: ArchiveObservation | undefined): boolean {
    if (spec.trigger !== "request" || engineOf(spec.databaseType)?.backups?.restorePoints !== "any_second")
      return false;
    const archive = deps.archives.get(spec.serviceId)?.object;
    if (archive === undefined || archive.status.lastAutomatedAt !== null) return false;
    const now = clock.now();
    return archive.spec.log === null ? now - metadata.createdAt < logStartTimeoutMs : awaitsLog(archive, report, now);
  }

  const get = (id: string | undefined) => (id === undefined ? undefined : index.get(id)?.object);

  /** One backup of a service runs at a time: the final one first, then by creation. */
  function isNext(backup: BackupObject): boolean {
    const open = index.of(backup.spec.serviceId).flatMap(({ object }) => (hasEnded(object) ? [] : [object]));
    if (open.some(({ metadata, status }) => metadata.id !== backup.metadata.id && status.state !== "pending"))
      return false;
    const first = open.find(({ spec }) => spec.trigger === "final") ?? open[0];
    return first === undefined || first.metadata.id === backup.metadata.id;
  }

  function hasCapacity(machineId: string | undefined): boolean {
    const hostOf = (id: string | null | undefined) => deps.machines.get(id ?? "")?.object.spec.hostId ?? null;
    const host = hostOf(machineId);
    const running = index.open().filter(({ object }) => object.status.state === "running");
    return running.filter(({ object }) => hostOf(object.status.machineId) === host).length < backupsPerHostMax;
  }

  /** The backup with the backups that it depends on. */
  function requireChain(backup: BackupObject): readonly BackupObject[] {
    const chain = chainOf(backup, get);
    if (chain === undefined) throw new BackupDamaged("a base of the backup does not exist");
    return chain;
  }

  function keyOfBackup({ spec }: BackupObject): BackupKeyObject {
    const key = backupKeys.get(spec.serviceId);
    if (key === undefined) throw new Error(`the backup key of ${spec.serviceId} does not exist`);
    return key.object;
  }

  /** Stores the keys before the machine gets them, so that each object that the machine stores can be decrypted. */
  async function start(backup: BackupObject, signal: AbortSignal): Promise<void> {
    const { id } = backup.metadata;
    const { kind, backupType, trigger } = backup.spec;
    const key = keyOfBackup(backup);
    await storeKeys(objects, backup, key);
    const base = get(backup.spec.baseId);
    // Scheduled backups run at low priority, and have a page map for the next increment.
    const isScheduled = backupType === "automated" && trigger !== "final";
    const value = create(StartBackupSchema, {
      backupId: id,
      attempt: backup.status.attempt,
      kind,
      key: dataKeyMessage(key, { id, ...backup.spec }, deps.sealer),
      background: isScheduled,
      ...(base && { base: sourceBackup(base, key, deps.sealer) }),
      pageMap: isScheduled,
      isLast: trigger === "final" && services.get(backup.spec.serviceId)?.object.spec.closed === true,
    });
    await run(backup, { case: "startBackup", value }, signal);
  }

  async function sendCancel(backup: BackupObject, signal: AbortSignal): Promise<void> {
    const value = create(CancelBackupSchema, { backupId: backup.metadata.id });
    await run(backup, { case: "cancelBackup", value }, signal);
  }

  /** Runs a task. A later reconcile repeats a task without a response. */
  async function run(backup: BackupObject, input: TaskInput, signal: AbortSignal): Promise<void> {
    const service = services.get(backup.spec.serviceId)?.object;
    const { machineId } = backup.status;
    if (service === undefined || machineId === null) return;
    const { metadata, spec, status } = service;
    const of = {
      ownerId: metadata.id,
      generation: spec.instanceGeneration,
      term: status.term,
      lane: "control",
    } as const;
    try {
      const result = await fleet.run(machineId, { ...of, input, deadlineMs: taskTimeoutMs }, taskTimeoutMs, signal);
      if (result.failure === undefined) return;
      const { code, message } = result.failure;
      if (code === "not_supported") refusals.set(backup.metadata.id, { code, message });
      log.info("backup task refused", { backup: backup.metadata.id, task: input.case, code, reason: message });
    } catch (error) {
      signal.throwIfAborted();
      log.info("backup task got no response", { backup: backup.metadata.id, task: input.case, error: String(error) });
    }
  }

  /** Verifies the backup on request: reads every byte. */
  async function verify(
    stored: Stored<BackupObject>,
    operationId: string,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { object: backup } = stored;
    const id = `verify/${backup.metadata.id}`;
    const operation = await findOperation(operations, operationId, signal);
    const state = checks.poll(id);
    const pauseMs = remainingPauseMs(backup.status.retry, clock.now());
    if (state === undefined && pauseMs > 0) return again(pauseMs, "object store failed");
    if (state === undefined)
      checks.begin(id, (onProgress) => checkBackup(requireChain(backup), keyOfBackup(backup), "all", deps, onProgress));
    if (state === undefined || state.kind === "running") return again(recheckMs, "verification runs");
    const after = advanceVerification(backup, operation?.object, state, clock.now());
    const unit = deps.begin();
    if (operation !== undefined && after.operation !== undefined && after.operation !== operation.object)
      unit.update(operationKind, operation, after.operation);
    unit.update(backupKind, stored, after.backup);
    await backups.untilRevision(await unit.commit(signal), 1_000);
    const reason = state.kind === "failed" ? state.error.message : "";
    log.info("backup verified", { backup: backup.metadata.id, passed: state.kind === "passed", reason });
    return again(0, "verified");
  }

  /** Deletes objects that belong to no backup, once the URLs of abandoned attempts have expired. */
  async function deleteLeftovers(stored: Stored<BackupObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { object: backup } = stored;
    const { metadata, spec, status } = backup;
    if (isClear(backup)) return settled;
    const prefix = backupPrefix(spec.serviceId, metadata.id);
    const isCompleted = status.state === "completed";
    const belongs = isCompleted ? await ownObjects(backup, keyOfBackup(backup), deps) : () => false;
    await deleteBelow(objects, prefix, signal, belongs);
    const remainingMs = (status.finishedAt ?? 0) + urlLifetimeMs - clock.now();
    if (remainingMs > 0) return again(remainingMs, "an attempt may still store something");
    const unit = deps.begin();
    unit.update(backupKind, stored, { ...backup, status: { ...status, isClear: true } });
    await backups.untilRevision(await unit.commit(signal), 1_000);
    return settled;
  }

  async function remove(stored: Stored<BackupObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { metadata, spec } = stored.object;
    await deleteBelow(objects, backupPrefix(spec.serviceId, metadata.id), signal);
    const unit = deps.begin();
    unit.remove(backupKind, stored);
    await backups.untilRevision(await unit.commit(signal), 1_000);
    log.info("backup removed", { service: spec.serviceId, backup: metadata.id });
    return settled;
  }

  function logTransition(before: BackupObject, { metadata, spec, status }: BackupObject): void {
    const { serviceId: service } = spec;
    const { state: to, attempt, error } = status;
    const reason = error === null ? {} : { code: error.code, reason: error.message };
    log.info("backup state changed", {
      service,
      backup: metadata.id,
      from: before.status.state,
      to,
      attempt,
      ...reason,
    });
  }

  return {
    reconciler: { name: "backup", reconcile },
    *keys() {
      for (const { object } of backups.values()) yield object.metadata.id;
    },
    inputs: (id) => backups.get(id)?.modRevision ?? 0n,
    subscribe(onChange) {
      listeners.add(onChange);
      const wakeOf = (serviceId: string) => {
        for (const { object } of index.of(serviceId)) if (!hasEnded(object)) onChange(object.metadata.id);
      };
      const watches = [
        backups.subscribe((id) => {
          onChange(id);
          // When a backup ends, the next backup of the service may start.
          const serviceId = backups.get(id)?.object.spec.serviceId;
          if (serviceId !== undefined) wakeOf(serviceId);
        }),
        services.subscribe(wakeOf),
        fleet.subscribe((machineId) => {
          for (const { object } of index.open()) {
            const service = services.get(object.spec.serviceId)?.object;
            if (service !== undefined && taskTarget(service).id === machineId) onChange(object.metadata.id);
          }
        }),
      ];
      return {
        close() {
          listeners.delete(onChange);
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
