import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import {
  authorityFileIn,
  type ControllerUnit,
  controllerUnits,
  writeControllerHost,
} from "@holdfast/local/controllers/controller-host.ts";
import { parseControllerJoinFile } from "@holdfast/local/controllers/controller-join-file.ts";
import { controllerUnitText } from "@holdfast/local/controllers/controller-units.ts";
import { joinFileOf, writePrepared } from "@holdfast/local/controllers/prepared-directory.ts";
import { installedPaths } from "@holdfast/local/installed/installed-paths.ts";
import { parseSettings } from "@holdfast/local/installed/settings-file.ts";
import { openPrograms } from "@holdfast/local/programs.ts";
import { makeBridgedNetwork, type BridgedHost } from "../network/bridged-network.ts";
import { basic, createRest, type Rest } from "../api/rest.ts";
import { waitUntil } from "../wait-until.ts";
import { guardDirectory } from "./directory-guard.ts";
import { lastLogLines, saveLogs } from "./platform-logs.ts";
import { findBelow, isAlive } from "./platform-processes.ts";
import { startControllersHistory } from "./controllers-history.ts";

const run = promisify(execFile);
const checkout = join(import.meta.dirname, "..", "..", "..");

/** Environment of the test's controllers: requests without a limit, and no machine that no test requests. */
const testEnvironment = {
  HOLDFAST_RATE_READS: "0",
  HOLDFAST_RATE_CHANGES: "0",
  HOLDFAST_WAITING_MACHINES_MAX: "0",
  HOLDFAST_SPARES: "0",
  HOLDFAST_AGENT_UPGRADE: "off",
  HOLDFAST_FIRST_BACKUP_AFTER_S: "86400",
  HOLDFAST_DEFAULT_ALLOWED_CIDRS: "127.0.0.0/8",
};

/** A host with a controller, a member of etcd and a DNS server. */
export interface ControllerHost {
  /** Id of its controller. */
  readonly id: string;
  readonly address: string;
  /** `host:port` of its DNS server. */
  readonly dns: string;
  /** REST API of its controller, as the owner of the first organization. */
  readonly rest: Rest;
  /** gRPC API of its controller, as the operator. */
  readonly operator: { readonly url: string; readonly ca: string; readonly authorization: string };
  /** Pid of its controller. */
  readonly controller: number;
  /** Kills the controller, the member of etcd and the DNS server. */
  kill(): Promise<void>;
  /** Starts them; resolves when its API responds. */
  start(): Promise<void>;
  cable(plugged: boolean): Promise<void>;
  /** Status of a request by a client on the host itself, as the owner of the first organization. */
  statusInside(verb: string, path: string, body?: object): Promise<number>;
}

/** Hosts of controllers in networks of their own, with the files and units of `holdfast install controller`. */
export interface ControllerHosts {
  /** Directory with the logs. */
  readonly directory: string;
  /** Address of this host in their network. */
  readonly own: string;
  readonly hosts: readonly ControllerHost[];
  remove(): Promise<void>;
}

export async function startControllerHosts(count: number): Promise<ControllerHosts> {
  const programs = await openPrograms(checkout, process.env, () => undefined);
  const network = await makeBridgedNetwork(count);
  const directory = mkdtempSync(join(tmpdir(), "holdfast-controllers-"));
  const guard = guardDirectory(directory);
  const opened: ControllerHost[] = [];
  async function remove(): Promise<void> {
    for (const host of opened) {
      host.rest.close();
      await host.kill();
    }
    saveLogs(directory);
    await guard.end();
    await network.close();
  }
  try {
    mkdirSync(join(directory, "log"));
    mkdirSync(join(directory, "objects"));
    const prepared = join(directory, "prepared");
    // The command refuses a directory as the object store, since hosts share none.
    const plan = {
      domain: "local.holdfast.test",
      history: network.own,
      objects: `file://${join(directory, "objects")}`,
      addresses: network.hosts.map(({ address }) => address),
      replaced: [],
    };
    await writePrepared(prepared, plan, "a secret of this test, which no process serves", Date.now());
    await startControllersHistory(directory, prepared, network.own);
    const first = JSON.parse(readFileSync(join(prepared, "shared", "bootstrap.json"), "utf8"));
    for (const [at, host] of network.hosts.entries())
      opened.push(controllerHost({ directory, prepared, host, number: at + 1, programs, first }));
    await Promise.all(opened.map((host) => host.start()));
    return { directory, own: network.own, hosts: opened, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

interface Parts {
  readonly directory: string;
  readonly prepared: string;
  readonly host: BridgedHost;
  readonly number: number;
  readonly programs: { readonly controller: string; readonly dns: string };
  /** Content of bootstrap.json. */
  readonly first: Readonly<Record<"username" | "password" | "api_key_id" | "api_key_secret", string>>;
}

function controllerHost({ directory, prepared, host, number, programs, first }: Parts): ControllerHost {
  const { address, enter } = host;
  // All hosts of the test share one file system, so each has a root directory with the files of an installation.
  const paths = { ...installedPaths(join(directory, `host-${number}`)), cache: cacheDirectory(process.env) };
  const code = { node: process.execPath, directory: checkout, programs };
  writeControllerHost(parseControllerJoinFile(readFileSync(joinFileOf(prepared, address), "utf8")), paths);
  const authority = authorityFileIn(paths);
  const children = new Map<string, ChildProcess>();
  const ended = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

  /** Runs a unit's command with its environment, as systemd does. */
  function launchUnit(unit: ControllerUnit): void {
    const text = controllerUnitText(unit, code, paths);
    const [argv = ""] = valuesOf(text, "ExecStart");
    const variables = valuesOf(text, "Environment").flatMap((line) => line.split(" "));
    const files = valuesOf(text, "EnvironmentFile").filter((path) => !path.startsWith("-"));
    const settings = files.map((path) => parseSettings(readFileSync(path, "utf8")));
    const { PATH = "" } = process.env;
    const env: Record<string, string> = {
      PATH,
      ...Object.fromEntries(variables.map((line) => line.split("=") as [string, string])),
      ...Object.assign({}, ...settings),
      ...(unit === "controller" ? testEnvironment : {}),
    };
    const log = openSync(join(directory, "log", `${unit}-${number}.log`), "a");
    const { command, args } = dyingWithParent([...enter, ...argv.split(" ")]);
    children.set(unit, spawn(command, args, { cwd: "/", env, stdio: ["ignore", log, log] }));
  }

  const url = `https://${address}:8443`;
  let rest: Rest | undefined;
  let ca = "";
  return {
    id: `controller-${number}`,
    address,
    dns: `${address}:53`,
    get rest() {
      if (rest === undefined) throw new Error(`controller-${number} has not started`);
      return rest;
    },
    get operator() {
      return { url, ca, authorization: basic(first.username, first.password) };
    },
    get controller() {
      return children.get("controller")?.pid ?? 0;
    },
    async kill() {
      const all = [...children.values()].flatMap(({ pid }) => (pid === undefined ? [] : [pid, ...findBelow(pid)]));
      await Promise.all(
        [...children.values()].map(async (child) => {
          if (ended(child)) return;
          const closed = new Promise((resolve) => child.once("close", resolve));
          child.kill("SIGKILL");
          await closed;
        }),
      );
      // etcd ends after its unit's program, and its successor needs its ports.
      await waitUntil(`all processes of host ${number} have ended`, () => !all.some(isAlive));
    },
    async start() {
      for (const unit of controllerUnits) launchUnit(unit);
      const describe = () => lastLogLines(directory, 15);
      await waitUntil(
        `controller-${number} responds`,
        async () => {
          if (rest === undefined) {
            ca = readFileSync(authority, "utf8");
            rest = createRest({ baseUrl: url, ca, authorization: basic(first.api_key_id, first.api_key_secret) });
          }
          return (await rest.get("/catalog", { timeoutMs: 5_000 })).status === 200;
        },
        { withinMs: 150_000, everyMs: 200, describe },
      );
    },
    cable: host.cable,
    async statusInside(verb, path, body) {
      const [command, ...args] = [...enter, process.execPath, "-e", requestProgram, `${url}${path}`, verb];
      const env = {
        ...process.env,
        NODE_EXTRA_CA_CERTS: authority,
        AUTHORIZATION: basic(first.api_key_id, first.api_key_secret),
      };
      return Number((await run(command, [...args, JSON.stringify(body ?? null)], { env })).stdout);
    },
  };
}

/** Prints the status of a request: URL, verb and body are its arguments. */
const requestProgram = `
const [url, method, body] = process.argv.slice(1);
const headers = { authorization: process.env.AUTHORIZATION, "content-type": "application/json" };
const options = { method, headers, ...(body !== "null" && { body }), signal: AbortSignal.timeout(20_000) };
fetch(url, options).then(({ status }) => process.stdout.write(String(status)));
`;

/** Values of the lines of a unit with this name. */
function valuesOf(unit: string, name: string): string[] {
  return unit.split("\n").flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []));
}
