import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type BackupObservation,
  type LogArchiveSchema,
  RestoreSourceSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { startTestStore } from "@holdfast/testing/controller/store.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import {
  type Intervals as ProbeGaps,
  primaryByLease,
  watchIntervals as watchProbeGaps,
} from "@holdfast/testing/machines/watch-intervals.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { Client } from "pg";
import { type Cost, costOf } from "./cost.ts";
import { cpuMsOf } from "./host.ts";

/** Cost of a job: of its component, and of the process that hands out or receives the engine's files. */
export interface JobCost extends Cost {
  /** Peak resident memory of the component. */
  readonly residentBytes: number;
}

export interface MadeBackup {
  readonly backupId: string;
  readonly attempt: number;
  readonly key: { readonly id: string; readonly secret: string };
  readonly manifestSha256: string;
  readonly reported: BackupObservation;
  readonly cost: JobCost;
}

/** A PostgreSQL with backups into a directory store, and a machine to restore to. */
export type BackupFixture = Awaited<ReturnType<typeof startBackupFixture>>;

const password = "a-password-of-the-bench";
const longMs = 3_600_000;
const readFiles = ["--pgdata=-", "--format=tar", "--wal-method=fetch", "--checkpoint=fast"];

/** Starts the machine, store and keys of a backup. Needs root. */
export async function startBackupFixture(version = "17") {
  const reason = whyNoAgentMachine("postgresql", version);
  if (reason !== undefined) throw new Error(reason);
  const programs = `/usr/lib/postgresql/${version}/bin`;
  const users = [{ username: "app_user", role: "admin", verifier: scramVerifier(password) }];
  const machine = (spec: object) =>
    startAgentMachine({
      engine: "postgresql",
      version,
      spec: { users, databases: ["defaultdb"], storageBytes: 64n << 30n, ...spec },
    });
  const [store, source, target] = await Promise.all([startTestStore(), machine({}), machine({ serviceId: "s-2" })]);
  for (const each of [source, target]) each.controller.signer = store.signer;
  // Only a member with data becomes the primary.
  for (const change of [{}, primaryByLease]) {
    const { failure } = await source.converge(change);
    if (failure !== undefined) throw new Error(failure.message);
  }
  const { port } = source.endpoint.instance.spec;
  const socketDirectory = join(source.directory, "run/engine");
  const asUser = ["-h", "127.0.0.1", "-p", String(port), "-U", "app_user", "-d", "defaultdb"];
  const asPlatform = [`--host=${socketDirectory}`, `--port=${port}`, "--username=holdfast"];

  async function sql(text: string, of = source): Promise<Record<string, unknown>[]> {
    const client = await connectPostgresql(of.endpoint, { user: "app_user", password });
    try {
      return (await client.query(text)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }

  /** Runs a program of the engine in its machine, with its output piped to a shell of the host. */
  function within(argv: readonly string[], rest = ""): Promise<Cost> {
    const enter = ["--target", String(source.keeperPid()), "--mount", "--pid", "--"];
    const command = ["nsenter", ...enter, ...argv].map((word) => `'${word}'`).join(" ");
    return costOf({ command: "bash", args: ["-o", "pipefail", "-c", `${command} ${rest}`] });
  }

  async function backup(backupId: string, { base, pageMap = false }: { base?: MadeBackup; pageMap?: boolean } = {}) {
    const key = { id: `key-of-${backupId}`, secret: randomBytes(32).toString("base64") };
    const kind = base === undefined ? "full" : "incremental";
    const value = { backupId, attempt: 1, kind, key, pageMap, ...(base && { base: sourceOf(base) }) };
    const seen = () => source.controller.observations.at(-1)?.backup;
    const cost = await watched(source, async () => {
      const input = { case: "startBackup" as const, value };
      const task = { ...source.header, lane: Lane.CONTROL, class: TaskClass.QUICK, input };
      const { failure } = await source.controller.perform(task);
      if (failure !== undefined) throw new Error(failure.message);
      const isFinished = () => seen()?.backupId === backupId && seen()?.state !== "running";
      await waitUntil(`${backupId} is over`, isFinished, { withinMs: longMs, describe: source.log });
    });
    const reported = seen() as BackupObservation;
    if (reported.state !== "stored") throw new Error(`${backupId} is ${reported.state}: ${reported.error}`);
    return { backupId, attempt: 1, key, manifestSha256: reported.manifestSha256, reported, cost };
  }

  async function restore(chain: readonly MadeBackup[]): Promise<JobCost> {
    const [newest, ...earlier] = chain.toReversed().map(sourceOf);
    if (newest === undefined) throw new Error("a restore is of a backup");
    const of = create(RestoreSourceSchema, {
      restoreId: `r-${newest.backupId}`,
      serviceId: "s-1",
      backup: newest,
      earlier: earlier.toReversed(),
      target: { target: { case: "backupEnd", value: true } },
    });
    return watched(target, async () => {
      const { failure } = await target.converge({ source: of, serviceId: "s-2" });
      if (failure !== undefined) throw new Error(failure.message);
    });
  }

  /** Gaps between the periodic actions of the source's agent during the work. */
  async function probeGaps(work: () => Promise<void>): Promise<ProbeGaps> {
    const owner = new Client({ host: socketDirectory, port, user: "holdfast" });
    await owner.connect();
    try {
      return await watchProbeGaps(source, async (text) => (await owner.query<{ at: Date }>(text)).rows, work);
    } finally {
      await owner.end();
    }
  }

  /** Starts the archive of the source's log. */
  async function follow(archive: MessageInitShape<typeof LogArchiveSchema>): Promise<void> {
    const { failure } = await source.converge({ ...primaryByLease, archive });
    if (failure !== undefined) throw new Error(failure.message);
  }

  return {
    sql,
    backup,
    follow,
    /** The agent's last report on its archive. */
    archive: () => source.controller.observations.at(-1)?.archive,
    probeGaps,
    restore,
    /** Rows of the target, after a restore. */
    restored: (text: string) => sql(text, target),
    uid: 1_800_000_000 + port,
    port,
    dataDirectory: join(source.directory, "data/postgresql"),
    socketDirectory,
    pgbench: (...options: string[]) =>
      within([
        "/usr/bin/env",
        `PGPASSWORD=${password}`,
        "PGSSLMODE=require",
        `${programs}/pgbench`,
        ...asUser,
        ...options,
      ]),
    /** Reads the files as a backup does, through a program of the host. */
    piped: (rest: string) => within([`${programs}/pg_basebackup`, ...readFiles, ...asPlatform], rest),
    async remove() {
      await Promise.all([source.remove(), target.remove()]);
      await store.remove();
    },
  };
}

function sourceOf({ backupId, attempt, key, manifestSha256 }: MadeBackup) {
  return { backupId, attempt, key, manifestSha256 };
}

/** Samples a job's processes until it is over; the last sample counts. */
async function watched(machine: AgentMachine, work: () => Promise<void>): Promise<JobCost> {
  const cpu = new Map<number, number>();
  let residentBytes = 0;
  const look = () => {
    const jobs = machine.pidsOfCode("backup");
    for (const pid of jobs) residentBytes = Math.max(residentBytes, peakOf(pid));
    for (const pid of [...jobs, ...machine.pidsOf("pg_basebackup"), ...machine.pidsOf("walsender")])
      try {
        cpu.set(pid, cpuMsOf(pid));
      } catch {
        // It has ended.
      }
  };
  const looking = setInterval(look, 250);
  const startedAt = performance.now();
  try {
    await work();
  } finally {
    clearInterval(looking);
  }
  const cpuMs = cpu.values().reduce((sum, ms) => sum + ms, 0);
  return { wallMs: performance.now() - startedAt, cpuMs, residentBytes };
}

function peakOf(pid: number): number {
  try {
    const found = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"));
    return Number(found?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
