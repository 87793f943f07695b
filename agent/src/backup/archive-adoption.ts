import { setTimeout as sleep } from "node:timers/promises";
import { buffer } from "node:stream/consumers";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { type LogHeader, openLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { type LogFacet, LogRemoved } from "../engines/backup-facet.ts";
import { type ArchiveState, readArchiveState, writeArchiveState } from "./archive-state.ts";
import type { ArchiveJob } from "./job.ts";
import type { JobContext } from "./job-context.ts";

const retryMs = 1_000;

/**
 * Returns the state from which the log archive continues: this machine's own, or, if another machine was the primary
 * since, the state that its archive saved in the replicated log, advanced by the objects in the store. Later objects of
 * that primary are not part of this history and are ignored. Retries until engine and store respond. Undefined for a
 * new archive. Throws LogRemoved.
 */
export async function adoptArchive(
  job: ArchiveJob,
  deps: Pick<JobContext, "instance" | "store" | "link" | "signal">,
  log: LogFacet,
): Promise<ArchiveState | undefined> {
  const { instance, link, signal } = deps;
  const { archiveId, term } = job;
  const { data } = instance.paths;
  const ownState = await readArchiveState(data);
  if (ownState?.archiveId === archiveId && ownState.term === term) return ownState;
  for (;;) {
    try {
      const saved = parse(await log.readArchiveState(instance, signal));
      if (saved?.archiveId !== archiveId || saved.term > term) return ownState;
      if (ownState?.archiveId === archiveId && ownState.term >= saved.term) return ownState;
      const adopted = await advanceThroughStore(saved, job, deps, log);
      // Stored once, so that objects stored later under the old term do not change the start.
      await writeArchiveState(data, adopted);
      return adopted;
    } catch (error) {
      if (error instanceof LogRemoved || signal.aborted) throw error;
      link.report({
        archiveId,
        term,
        state: "starting",
        reason: error instanceof Error ? error.message : String(error),
      });
      await sleep(retryMs, undefined, { signal });
    }
  }
}

function parse(text: string | undefined): ArchiveState | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as ArchiveState);
}

/** Advances the state by the objects stored after it was saved, as far as they match this engine's log. */
async function advanceThroughStore(
  saved: ArchiveState,
  job: ArchiveJob,
  { instance, store, signal }: Pick<JobContext, "instance" | "store" | "signal">,
  log: LogFacet,
): Promise<ArchiveState> {
  const { service } = job;
  const keys = new Map([...job.earlierKeys, job.key].map(({ id, secret }) => [id, Buffer.from(secret, "base64")]));
  const ends = new Map<string, string | undefined>();
  let state = saved;

  async function isInHistory({ branch, from, to }: LogHeader): Promise<boolean> {
    if (from !== state.durablePosition) return false;
    if (!ends.has(branch)) ends.set(branch, await log.branchEnd(instance, branch, signal));
    const end = ends.get(branch);
    return end === undefined || log.distance(to, end) >= 0;
  }

  for (;;) {
    const sequence = state.lastSequence + 1;
    const location = { service, term: saved.term };
    const stored = await store.get(logObject(location, sequence), signal);
    if (stored === undefined) return state;
    const bytes = await buffer(stored);
    let header: LogHeader;
    try {
      ({ header } = openLog(bytes, { ...location, sequence }, (id) => keys.get(id)));
    } catch (error) {
      if (error instanceof BackupDamaged) return state;
      throw error;
    }
    if (!(await isInHistory(header))) return state;
    const { branch, to: durablePosition, time, settings = state.settings } = header;
    const durableTimeMs = time === "" ? state.durableTimeMs : Date.parse(time);
    const storedBytes = state.storedBytes + bytes.length;
    const reached = { branch, lastSequence: sequence, durablePosition, durableTimeMs, storedBytes };
    state = { ...state, ...reached, ...(settings && { settings }) };
  }
}
