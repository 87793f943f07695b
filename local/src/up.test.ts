import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import { clean } from "./clean.ts";
import { readJson } from "./files.ts";
import { hostDeps } from "./host-deps.ts";
import type { Installation } from "./installation.ts";
import { portNames } from "./ports.ts";
import { sourcePrograms } from "./programs.ts";
import { up } from "./up.ts";
import { withPlatform } from "./with-platform.ts";

/** A stand-in for the controller: healthy once etcd accepts its certificate. */
const controller = `
import { copyFileSync, readFileSync } from "node:fs";
import { createServer, get } from "node:https";
const { HOLDFAST_ETCD, HOLDFAST_ETCD_CA, HOLDFAST_ETCD_CERT, HOLDFAST_ETCD_KEY, HOLDFAST_API_LISTEN, HOLDFAST_CA_FILE } = process.env;
const [ca, cert, key] = [HOLDFAST_ETCD_CA, HOLDFAST_ETCD_CERT, HOLDFAST_ETCD_KEY].map((file) => readFileSync(file));
get(HOLDFAST_ETCD + "/health", { ca, cert, key }, (answer) => {
  copyFileSync(HOLDFAST_ETCD_CA, HOLDFAST_CA_FILE);
  const server = createServer({ cert, key }, (_, response) => response.writeHead(answer.statusCode).end());
  server.listen(Number(HOLDFAST_API_LISTEN.split(":")[1]), "127.0.0.1");
});
process.on("SIGTERM", () => process.exit(0));
`;

const running: { stop(): Promise<void> }[] = [];
const checkouts: string[] = [];
afterEach(async () => {
  for (const platform of running.splice(0)) await platform.stop();
  for (const checkout of checkouts.splice(0)) rmSync(checkout, { recursive: true, force: true, maxRetries: 3 });
});

function makeDeps() {
  const checkout = mkdtempSync(join(tmpdir(), "holdfast-checkout-"));
  checkouts.push(checkout);
  for (const name of ["controller", "dns"]) mkdirSync(join(checkout, name, "src"), { recursive: true });
  writeFileSync(join(checkout, "controller", "src", "main.ts"), controller);
  writeFileSync(join(checkout, "dns", "src", "main.ts"), "setInterval(() => {}, 1000);");
  const printed: string[] = [];
  return {
    // Claims belong to the host: other installations start at the same time.
    ...hostDeps(),
    printed,
    checkout,
    programs: async () => sourcePrograms(checkout),
    print: (line: string) => void printed.push(line),
  };
}

/** Starts an installation and resolves when admin.json exists. */
async function start(deps: ReturnType<typeof makeDeps>, name = "data") {
  const dataDir = join(deps.checkout, name);
  const abort = new AbortController();
  let failure: Error | undefined;
  const done = up({ command: "up", dataDir, ports: {} }, deps, abort.signal).catch((error: Error) => {
    failure = error;
  });
  const isUp = () => {
    if (failure !== undefined) throw new GiveUp(`it does not start: ${failure.message}`);
    return existsSync(join(dataDir, "admin.json"));
  };
  await waitUntil("the installation is up", isUp, { withinMs: 150_000, describe: () => deps.printed.join("\n") });
  const platform = {
    dataDir,
    installation: readJson<Installation>(join(dataDir, "installation.json")),
    async stop() {
      abort.abort();
      await done;
    },
  };
  running.push(platform);
  return platform;
}

test("an installation starts, prints its address, stops, and is the same at the next start", async () => {
  const deps = makeDeps();
  const first = await start(deps);
  const admin = readFileSync(join(first.dataDir, "admin.json"), "utf8");
  expect(Object.keys(JSON.parse(admin))).toEqual([
    "base_url",
    "grpc_url",
    "inference_url",
    "registry_url",
    "username",
    "password",
    "api_key_id",
    "api_key_secret",
    "token",
    "ca_file",
    "dns_server",
  ]);
  expect(statSync(join(first.dataDir, "admin.json")).mode & 0o777).toBe(0o600);
  const history = await connect(first);
  await history.query("create table fact as select 1 as one");
  await history.end();

  await first.stop();
  expect(existsSync(join(first.dataDir, "admin.json"))).toBe(false);
  const second = await start(deps);
  expect(second.installation).toEqual(first.installation);
  expect(readFileSync(join(second.dataDir, "admin.json"), "utf8")).toBe(admin);
  const again = await connect(second);
  expect((await again.query("select one from fact")).rows).toEqual([{ one: 1 }]);
  await again.end();
});

test("a directory is run by one process, two directories share nothing, and clean removes all of one", async () => {
  const deps = makeDeps();
  const a = await start(deps, "a");
  const second = up({ command: "up", dataDir: a.dataDir, ports: {} }, deps, new AbortController().signal);
  await expect(second).rejects.toThrow(`process ${process.pid} runs this installation`);
  const b = await start(deps, "b");
  expect(b.installation?.loopback_block).not.toBe(a.installation?.loopback_block);
  const ports = [a, b].flatMap((each) => Object.values(each.installation?.ports ?? {}));
  expect(new Set(ports).size).toBe(2 * portNames.length);
  await a.stop();
  await clean(a.dataDir, deps);
  expect(existsSync(a.dataDir)).toBe(false);
});

test("a killed child is restarted", async () => {
  const deps = makeDeps();
  await start(deps);
  // Until it calls exec, its parent has the same command line.
  const pid = await waitUntil("it runs", () => {
    const found = execFileSync("pgrep", ["-f", join(deps.checkout, "dns", "src", "main.ts")], { encoding: "utf8" });
    return /^\d+\n$/.test(found) && Number(found);
  });
  process.kill(pid, "SIGKILL");
  await expect.poll(() => deps.printed.join("\n")).toContain("dns ended with SIGKILL and is restarted");
});

test("a port that was taken after the check is named, with its flag", async () => {
  const deps = makeDeps();
  const { signal } = new AbortController();
  const options = { dataDir: join(deps.checkout, "data"), ports: {} };
  await withPlatform(options, deps, signal, async (platform, { installation }) => {
    const port = installation.ports.etcd_peer;
    const other = createServer().listen(port, "127.0.0.1");
    await once(other, "listening");
    try {
      await expect(platform.start(signal)).rejects.toThrow(
        `port ${port} is busy; choose another with --etcd-peer-port`,
      );
    } finally {
      await platform.stop();
      await new Promise((resolve) => other.close(resolve));
    }
  });
});

test("no secret is in the arguments or the environment of any child", async () => {
  const deps = makeDeps();
  const { dataDir } = await start(deps);
  const bootstrap = readJson<Record<string, string>>(join(dataDir, "keys", "bootstrap.json")) ?? {};
  const secrets = [
    bootstrap["password"],
    bootstrap["api_key_secret"],
    bootstrap["token"],
    readFileSync(join(dataDir, "keys", "history-password"), "utf8"),
  ];
  const children = execFileSync("pgrep", ["-f", deps.checkout], { encoding: "utf8" }).trim().split("\n");
  const reported = children.flatMap((pid) => [readProc(pid, "cmdline"), readProc(pid, "environ")]).join("\n");
  expect(reported).toContain(dataDir);
  expect(secrets.filter((secret) => secret === undefined || reported.includes(secret))).toEqual([]);
});

function readProc(pid: string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    // It ended.
    return "";
  }
}

async function connect({ dataDir, installation }: Awaited<ReturnType<typeof start>>): Promise<pg.Client> {
  const client = new pg.Client({
    host: "127.0.0.1",
    port: installation?.ports.history ?? 0,
    user: "holdfast",
    database: "holdfast",
    password: readFileSync(join(dataDir, "keys", "history-password"), "utf8"),
    ssl: { ca: readFileSync(join(dataDir, "pki", "controller", "ca.crt"), "utf8") },
  });
  await client.connect();
  return client;
}
