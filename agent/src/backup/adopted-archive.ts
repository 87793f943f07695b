import { setTimeout as sleep } from "node:timers/promises";
import { buffer } from "node:stream/consumers";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { type LogHeader, openLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { type LogFacet, LogGone } from "../engines/backup-facet.ts";
import { type ArchiveState, readArchiveState, writeArchiveState } from "./archive-state.ts";
import type { ArchiveJob } from "./job.ts";
import type { JobSurroundings } from "./surroundings.ts";

const retryMs = 1_000;

/**
 * Where an archive goes on: as this machine left it, or, where another one was the primary since, as that one noted it in the log and
 * left it in the store. What the store has of that primary behind the answer is nobody's: this log never went there, or comes again
 * under the new term. Waits as long as engine and store do not answer. Undefined for an archive that begins. Throws LogGone.
 */
export async function adoptArchive(
  job: ArchiveJob,
  deps: Pick<JobSurroundings, "instance" | "store" | "link" | "signal">,
  log: LogFacet,
): Promise<ArchiveState | undefined> {
  const { instance, link, signal } = deps;
  const { archiveId, term } = job;
  const { data } = instance.paths;
  const own = await readArchiveState(data);
  if (own?.archiveId === archiveId && own.term === term) return own;
  for (;;) {
    try {
      const noted = parse(await log.noted(instance, signal));
      if (noted?.archiveId !== archiveId || noted.term > term) return own;
      if (own?.archiveId === archiveId && own.term >= noted.term) return own;
      const adopted = await followStored(noted, job, deps, log);
      // Once: what was stored later under the old term must not make this one begin elsewhere.
      await writeArchiveState(data, adopted);
      return adopted;
    } catch (error) {
      if (error instanceof LogGone || signal.aborted) throw error;
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

/** The state with the objects that were stored after it was noted, as far as they have what this engine's log has. */
async function followStored(
  noted: ArchiveState,
  job: ArchiveJob,
  { instance, store, signal }: Pick<JobSurroundings, "instance" | "store" | "signal">,
  log: LogFacet,
): Promise<ArchiveState> {
  const { service } = job;
  const keys = new Map([...job.earlierKeys, job.key].map(({ id, secret }) => [id, Buffer.from(secret, "base64")]));
  const ends = new Map<string, string | undefined>();
  let state = noted;

  async function isOurs({ branch, from, to }: LogHeader): Promise<boolean> {
    if (from !== state.durablePosition) return false;
    if (!ends.has(branch)) ends.set(branch, await log.branchEnd(instance, branch, signal));
    const end = ends.get(branch);
    return end === undefined || log.distance(to, end) >= 0;
  }

  for (;;) {
    const sequence = state.lastSequence + 1;
    const place = { service, term: noted.term };
    const there = await store.get(logObject(place, sequence), signal);
    if (there === undefined) return state;
    const bytes = await buffer(there);
    let header: LogHeader;
    try {
      ({ header } = openLog(bytes, { ...place, sequence }, (id) => keys.get(id)));
    } catch (error) {
      if (error instanceof BackupDamaged) return state;
      throw error;
    }
    if (!(await isOurs(header))) return state;
    const { branch, to: durablePosition, time, settings = state.settings } = header;
    const durableTimeMs = time === "" ? state.durableTimeMs : Date.parse(time);
    const storedBytes = state.storedBytes + bytes.length;
    const reached = { branch, lastSequence: sequence, durablePosition, durableTimeMs, storedBytes };
    state = { ...state, ...reached, ...(settings && { settings }) };
  }
}
