import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { dyingWithParent, type Launch } from "@holdfast/image/in-image.ts";
import { openPrograms } from "@holdfast/local/programs.ts";
import { makeBridgedNetwork, type BridgedHost } from "../network/bridged-network.ts";
import { basic, createRest, type Rest } from "../api/rest.ts";
import { waitUntil } from "../wait-until.ts";
import { guardDirectory } from "./directory-guard.ts";
import { lastLogLines, saveLogs } from "./platform-logs.ts";
import { asRoot, testProgram, testUid } from "./platform-software.ts";

const run = promisify(execFile);
const checkout = join(import.meta.dirname, "..", "..", "..");
const documented = join(checkout, "docs", "operate", "controllers");

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

/** Hosts of controllers in networks of their own, set up as docs/operate/several-controllers.md describes. */
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
    const key = join(directory, "objects-key");
    writeFileSync(key, "a secret of this test, which no process serves");
    const prepared = join(directory, "prepared");
    const addresses = network.hosts.map(({ address }) => address);
    const objects = `file://${join(directory, "objects")}`;
    await run("sh", [
      join(documented, "prepare.sh"),
      prepared,
      "local.holdfast.test",
      network.own,
      objects,
      key,
      ...addresses,
    ]);
    await startHistory(directory, prepared, network.own);
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
  const files = join(prepared, address);
  const state = join(directory, `host-${number}`);
  // All hosts of the test share one file system.
  const paths: readonly (readonly [string, string])[] = [
    ["/etc/holdfast", files],
    ["/var/lib/holdfast", join(state, "holdfast")],
    ["/var/lib/etcd", join(state, "etcd")],
    ["/var/cache/holdfast", cacheDirectory(process.env)],
  ];
  const read = (file: string) =>
    paths.reduce((text, [from, to]) => text.replaceAll(from, to), readFileSync(file, "utf8"));
  const settings = (name: string) => parseEnvironment(read(join(files, `${name}.env`)));
  for (const name of ["etcd", "holdfast"]) mkdirSync(join(state, name), { recursive: true });
  giveTo(testUid, [join(state, "etcd"), join(files, "etcd")]);
  const authority = join(state, "holdfast", "ca.pem");
  const children = new Map<string, ChildProcess>();
  const ended = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null;

  function launch(name: string, { command, args }: Launch, environment: Readonly<Record<string, string>>): void {
    const log = openSync(join(directory, "log", `${name}-${number}.log`), "a");
    const inside = dyingWithParent([...enter, command, ...args]);
    const { PATH = "" } = process.env;
    const env = { PATH, ...environment };
    children.set(name, spawn(inside.command, inside.args, { cwd: "/", env, stdio: ["ignore", log, log] }));
  }

  /** Runs the unit's command line with this program. */
  function launchUnit(name: "controller" | "dns"): void {
    const unit = readFileSync(join(documented, `holdfast-${name}.service`), "utf8");
    const [, ...argv] = (/^ExecStart=(.+)$/m.exec(unit)?.[1] ?? "").split(" ");
    const replaced = argv.map((word) => (word === `/srv/holdfast/programs/${name}.mjs` ? programs[name] : word));
    const node = dyingWithParent([process.execPath, ...replaced]);
    const more = name === "controller" ? testEnvironment : {};
    launch(name, node, { ...settings(name), NODE_COMPILE_CACHE: compileCache(), ...more });
  }

  function launchEtcd(): void {
    const etcd = testProgram("etcd", "3.5");
    // etcd reads each flag from the environment too, which the image's program does not inherit.
    const flags = Object.entries(settings("etcd")).map(
      ([name, value]) => `--${name.slice("ETCD_".length).toLowerCase().replaceAll("_", "-")}=${value}`,
    );
    const argv = [etcd.executable("etcd"), ...flags, "--logger=zap", "--log-outputs=stderr"];
    const binds = [join(state, "etcd"), join(files, "etcd")];
    launch("etcd", etcd.launch({ argv, uid: testUid, binds, asRoot }), {});
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
      await Promise.all(
        [...children.values()].map(async (child) => {
          if (ended(child)) return;
          const closed = new Promise((resolve) => child.once("close", resolve));
          child.kill("SIGKILL");
          await closed;
        }),
      );
    },
    async start() {
      launchEtcd();
      launchUnit("controller");
      launchUnit("dns");
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

function compileCache(): string {
  return join(cacheDirectory(process.env), "compile-cache");
}

/** PostgreSQL for events and audit, which all controllers reach by TLS; it ends with the directory. */
async function startHistory(directory: string, prepared: string, address: string): Promise<void> {
  const postgresql = testProgram("postgresql", "17");
  const [data, files] = [join(directory, "history"), join(prepared, "history")];
  mkdirSync(data);
  writeFileSync(join(files, "pg_hba.conf"), "hostssl holdfast holdfast samenet scram-sha-256\n");
  const launch = (argv: readonly string[]) => postgresql.launch({ argv, uid: testUid, binds: [data, files], asRoot });
  const [initdb, postgres] = [postgresql.executable("initdb"), postgresql.executable("postgres")];
  const password = readFileSync(join(prepared, "shared", "history-password"), "utf8");
  const sql = [`create role holdfast login password '${password}'`, "create database holdfast owner holdfast"];
  writeFileSync(join(files, "create.sql"), `${sql.join("\n")}\n`);
  const script = [
    `"${initdb}" --pgdata="$1/data" --username=postgres --auth=trust --no-sync --locale=C`,
    `"${postgres}" --single -D "$1/data" postgres <"$2/create.sql"`,
  ].join(" && ");
  giveTo(testUid, [data, files]);
  const created = launch(["/bin/sh", "-euc", script, "sh", data, files]);
  await run(created.command, [...created.args], { cwd: "/" });
  const options = [
    `listen_addresses=${address}`,
    "port=5432",
    "unix_socket_directories=",
    `hba_file=${join(files, "pg_hba.conf")}`,
    "ssl=on",
    `ssl_cert_file=${join(files, "tls.crt")}`,
    `ssl_key_file=${join(files, "tls.key")}`,
    "fsync=off",
    "shared_buffers=32MB",
    "max_connections=100",
    "logging_collector=off",
  ];
  const server = launch([postgres, "-D", join(data, "data"), ...options.flatMap((each) => ["-c", each])]);
  const log = openSync(join(directory, "log", "history.log"), "a");
  spawn(server.command, server.args, { cwd: "/", stdio: ["ignore", log, log] });
  await waitUntil("the history accepts connections", () => lastLogLines(directory, 20).includes("ready to accept"));
}

/** `NAME=value` lines, as systemd reads the file of an EnvironmentFile. */
function parseEnvironment(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

/** Changes the owner of the directories, with their files. */
function giveTo(uid: number, directories: readonly string[]): void {
  for (const directory of directories) {
    chownSync(directory, uid, uid);
    for (const name of readdirSync(directory)) chownSync(join(directory, name), uid, uid);
  }
}
