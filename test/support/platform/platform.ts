import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, killAtOnce, type PlatformProcesses } from "./platform-processes.ts";
import { basic, createRest, type Rest } from "../api/rest.ts";
import type { RestAnswer } from "../api/rest-answer.ts";
import { newSupervised } from "./supervised.ts";
import { waitUntil } from "../wait-until.ts";

/** What admin.json says. */
export interface AdminFile {
  readonly base_url: string;
  readonly grpc_url: string;
  readonly inference_url: string;
  readonly username: string;
  readonly password: string;
  readonly api_key_id: string;
  readonly api_key_secret: string;
  readonly token: string;
  readonly ca_file: string;
  readonly dns_server: string;
}

/** The whole platform, run as `npm start` runs it, in a data directory of its own. */
export interface Platform {
  readonly directory: string;
  readonly admin: AdminFile;
  /** Trust bundle of the API and of services, PEM. */
  readonly ca: string;
  /** The REST API for the owner of the first organization. */
  readonly rest: Rest;
  /** Authorization of the owner's API key, and of the platform's operator. */
  readonly owner: string;
  readonly operator: string;
  /** Bodies of error answers so far. */
  readonly errorBodies: readonly string[];
  processes(): PlatformProcesses;
  /** Starts it again after stop or kill9, with further flags; resolves when the API answers. */
  start(flags?: readonly string[]): Promise<void>;
  /** Ctrl-C; resolves when the supervisor is gone. */
  stop(): Promise<void>;
  /** kill -9 of the supervisor and all that goes with it; machines go on. */
  killControlPlane(): Promise<void>;
  /** kill -9 of every process of it, machines too. */
  kill9(): Promise<void>;
  /** Stops it and removes its data; whatever still runs of it is killed. */
  remove(): Promise<void>;
}

export interface PlatformOptions {
  /** Data directory; a new one below the system's temporary directory when absent. */
  readonly directory?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
}

/** What runs ahead of demand is in the way of tests that count machines; those that want it ask for it. */
const noneWaiting = { HOLDFAST_WAITING_MACHINES_MAX: "0" };
/** Disks that are made ahead cost a busy machine more than the few services of a test save by them. */
const noneAhead = { HOLDFAST_SPARES: "0" };
/** For tests of what users have, who change nothing. */
export const disksAhead = { HOLDFAST_SPARES: "2" };
/** Agents that change places are in the way of tests that count processes. */
const agentsStay = { HOLDFAST_AGENT_UPGRADE: "off" };

/** Backups that begin by themselves are in the way of tests that count operations; those that want them ask for them. */
const noneByThemselves = { HOLDFAST_FIRST_BACKUP_AFTER_S: "86400" };

/** Resolves when the API answers. The platform ends with the test's process, whatever ends that. */
export async function startPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const supervised = newSupervised("system", options.directory);
  const { directory, processes } = supervised;
  const errorBodies: string[] = [];
  const noteError = ({ status, text }: RestAnswer<unknown>) => {
    if (status >= 400) errorBodies.push(text);
  };

  const start = (flags: readonly string[] = []) =>
    supervised.start(["up", ...(options.flags ?? []), ...flags], {
      environment: { ...noneWaiting, ...noneAhead, ...agentsStay, ...noneByThemselves, ...options.environment },
      // What it says last: admin.json may be there since the last start.
      ready: async () => supervised.output.includes("Holdfast runs at ") && (await answers(readAdmin(directory))),
    });

  async function remove(): Promise<void> {
    rest?.close();
    await supervised.end("SIGINT", 20_000);
    // What an installation has outside of its directory goes by the platform's own means.
    if (options.flags?.includes("incus")) await supervised.clean();
    await supervised.remove();
  }

  let rest: Rest | undefined;
  try {
    await start();
  } catch (error) {
    await remove();
    throw error;
  }
  const admin = readAdmin(directory);
  const ca = readFileSync(admin.ca_file, "utf8");
  const owner = basic(admin.api_key_id, admin.api_key_secret);
  rest = createRest({ baseUrl: admin.base_url, ca, authorization: owner, onAnswer: noteError });
  return {
    directory,
    admin,
    ca,
    rest,
    owner,
    operator: basic(admin.username, admin.password),
    errorBodies,
    processes,
    start,
    stop: () => supervised.end("SIGINT"),
    async killControlPlane() {
      // Below whom to look for them is known only while the supervisor runs.
      const { etcd, history, dns, controllers } = processes();
      const pids = [etcd, history, dns, ...controllers].filter((pid) => pid !== undefined);
      await supervised.end("SIGKILL");
      for (const pid of pids) killAtOnce(pid);
      await waitUntil("the control plane is gone", () => !pids.some(isAlive));
    },
    async kill9() {
      // All stand still before the first dies, so that none can act on another one's end.
      const { all } = processes();
      for (const pid of all) killAtOnce(pid, "SIGSTOP");
      for (const pid of all) killAtOnce(pid);
      await waitUntil("all of it is gone", () => processes().all.length === 0);
    },
    remove,
  };
}

function readAdmin(directory: string): AdminFile {
  return JSON.parse(readFileSync(join(directory, "admin.json"), "utf8"));
}

async function answers(admin: AdminFile): Promise<boolean> {
  const authorization = basic(admin.api_key_id, admin.api_key_secret);
  const rest = createRest({ baseUrl: admin.base_url, ca: readFileSync(admin.ca_file, "utf8"), authorization });
  try {
    return (await rest.get("/catalog", { timeoutMs: 2_000 })).status === 200;
  } finally {
    rest.close();
  }
}
