import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isAlive, killImmediately, type PlatformProcesses } from "./platform-processes.ts";
import { basic, createRest, type Rest } from "../api/rest.ts";
import type { RestResponse } from "../api/rest-response.ts";
import { newSupervised } from "./supervised.ts";
import { waitUntil } from "../wait-until.ts";

/** Content of admin.json. */
export interface AdminFile {
  readonly base_url: string;
  readonly grpc_url: string;
  readonly inference_url: string;
  readonly registry_url: string;
  readonly username: string;
  readonly password: string;
  readonly api_key_id: string;
  readonly api_key_secret: string;
  readonly token: string;
  readonly ca_file: string;
  readonly dns_server: string;
}

/** A complete installation, run as `npm start` runs it, in a separate data directory. */
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
  /** Bodies of error responses so far. */
  readonly errorBodies: readonly string[];
  processes(): PlatformProcesses;
  /** Starts the platform again after `stop` or `kill9`, with additional flags; resolves when the API responds. */
  start(flags?: readonly string[]): Promise<void>;
  /** Sends SIGINT; resolves when the supervisor has ended. */
  stop(): Promise<void>;
  /** Kills the supervisor and its children with SIGKILL; machines continue to run. */
  killControlPlane(): Promise<void>;
  /** Kills every process of the platform with SIGKILL, including machines. */
  kill9(): Promise<void>;
  /** Stops the platform and removes its data; remaining processes are killed. */
  remove(): Promise<void>;
}

export interface PlatformOptions {
  /** Data directory; a new one below the system's temporary directory when absent. */
  readonly directory?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  /** Directory of the code that runs; this checkout when absent. */
  readonly checkout?: string;
  /** Prefix of the command line. */
  readonly enter?: readonly string[];
}

/** The warm pool would disturb tests that count machines; tests of it enable it. */
const noWarmPool = { HOLDFAST_WAITING_MACHINES_MAX: "0" };
/** Prepared disks cost a busy machine more than they save for the few services of a test. */
const noPreparedDisks = { HOLDFAST_SPARES: "0" };
/** Default settings of prepared disks, for tests that need them: `startPlatform` disables prepared disks. */
export const preparedDisks = { HOLDFAST_SPARES: "2" };
/** Agent handovers would disturb tests that count processes. */
const noAgentUpgrade = { HOLDFAST_AGENT_UPGRADE: "off" };

/** Scheduled backups would disturb tests that count operations; tests of them enable them. */
const noScheduledBackups = { HOLDFAST_FIRST_BACKUP_AFTER_S: "86400" };

/** Resolves when the API responds. The platform ends with the test's process, for any reason. */
export async function startPlatform(options: PlatformOptions = {}): Promise<Platform> {
  const supervised = newSupervised("system", options.directory, options.enter, options.checkout);
  const { directory, processes } = supervised;
  const errorBodies: string[] = [];
  const noteError = ({ status, text }: RestResponse<unknown>) => {
    if (status >= 400) errorBodies.push(text);
  };

  const start = (flags: readonly string[] = []) =>
    supervised.start(["up", ...(options.flags ?? []), ...flags], {
      environment: {
        ...noWarmPool,
        ...noPreparedDisks,
        ...noAgentUpgrade,
        ...noScheduledBackups,
        ...options.environment,
      },
      // The last line of the output, because admin.json may exist from the last start.
      ready: async () => supervised.output.includes("Holdfast runs at ") && (await isServing(readAdmin(directory))),
    });

  async function remove(): Promise<void> {
    rest?.close();
    await supervised.end("SIGINT", 20_000);
    // The platform's own command removes the installation's objects outside of its directory.
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
  rest = createRest({ baseUrl: admin.base_url, ca, authorization: owner, onResponse: noteError });
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
      // The processes to find them below are known only while the supervisor runs.
      const { etcd, history, dns, controllers } = processes();
      const pids = [etcd, history, dns, ...controllers].filter((pid) => pid !== undefined);
      await supervised.end("SIGKILL");
      for (const pid of pids) killImmediately(pid);
      await waitUntil("the control plane has ended", () => !pids.some(isAlive));
    },
    async kill9() {
      // All processes are stopped before the first is killed, so that none can react to the end of another.
      const { all } = processes();
      for (const pid of all) killImmediately(pid, "SIGSTOP");
      for (const pid of all) killImmediately(pid);
      await waitUntil("all processes have ended", () => processes().all.length === 0);
    },
    remove,
  };
}

function readAdmin(directory: string): AdminFile {
  return JSON.parse(readFileSync(join(directory, "admin.json"), "utf8"));
}

async function isServing(admin: AdminFile): Promise<boolean> {
  const authorization = basic(admin.api_key_id, admin.api_key_secret);
  const rest = createRest({ baseUrl: admin.base_url, ca: readFileSync(admin.ca_file, "utf8"), authorization });
  try {
    return (await rest.get("/catalog", { timeoutMs: 2_000 })).status === 200;
  } finally {
    rest.close();
  }
}
