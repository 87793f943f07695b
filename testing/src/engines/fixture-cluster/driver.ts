import { existsSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { UsersFacet } from "@holdfast/agent/engines/contents-facets.ts";
import type { EngineCheck, EngineDriver, Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { EngineRefused } from "@holdfast/agent/engines/engine-errors.ts";
import { EngineUserStateSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { waitUntil } from "../../wait-until.ts";
import { createClusterBackup } from "./backup.ts";
import { send, type User } from "./protocol.ts";

const software = "/fixture-cluster/1";
const settingsOf = ({ paths }: Instance) => join(paths.config, "cluster.json");
const stateOf = ({ paths }: Instance) => join(paths.data, "cluster", "state.json");
const memberOf = ({ paths }: Instance) => join(paths.run, "member.sock");
const frontOf = ({ paths }: Instance) => join(paths.run, "front.sock");
const node = (file: string, ...args: string[]) => ({
  argv: [process.execPath, join(import.meta.dirname, file), ...args],
  env: {},
  cwd: "/",
});
const stop = { signal: "SIGTERM", graceMs: 2_000 } as const;

interface Info {
  readonly version: string;
  readonly parameters: Record<string, string>;
}

/**
 * Driver of an engine unlike PostgreSQL and Valkey: its members elect their primary themselves, and it has two
 * components. It passes the conformance suite, which shows that the driver's contract is not specific to those two.
 */
export function createClusterDriver(): EngineDriver {
  return {
    // The type contains only engines on offer.
    engine: "valkey",
    topology: "peers",
    software: () => software,
    fingerprint: async (path) =>
      path === software ? { present: true, version: "1" } : { present: false, reason: `nothing is at ${path}` },
    render: ({ spec }) => {
      const { address, port, version, allowedCidrs, parameters } = spec;
      const content = JSON.stringify({ address, port, version, allowedCidrs, parameters });
      return [{ name: "cluster.json", content, mode: 0o640 }];
    },
    listeners: ({ spec }) => [{ address: spec.address, port: spec.port }],
    async bootstrap(instance) {
      const directory = join(instance.paths.data, "cluster");
      if (existsSync(directory)) return;
      await mkdir(`${directory}.partial`, { recursive: true });
      const users = Object.fromEntries(
        instance.spec.users.map(({ username, role, verifier }) => [username, { role, verifier }]),
      );
      await writeFile(join(`${directory}.partial`, "state.json"), JSON.stringify({ values: {}, users }));
      await rename(`${directory}.partial`, directory);
    },
    command: (instance) => node("member.ts", settingsOf(instance), stateOf(instance), memberOf(instance)),
    companions: (instance) => [
      {
        name: "front",
        command: node("front.ts", settingsOf(instance), instance.paths.tls, memberOf(instance), frontOf(instance)),
        stop,
      },
    ],
    async ready(instance, signal) {
      const responds = async () => {
        await send(memberOf(instance), { op: "info" }, signal);
        await send(frontOf(instance), { op: "reload" }, signal);
        return true;
      };
      await waitUntil("member and front respond", responds, {
        everyMs: 10,
        withinMs: Number.POSITIVE_INFINITY,
        signal,
      });
    },
    stop,
    async reload(instance, signal) {
      for (const socket of [frontOf(instance), memberOf(instance)]) await send(socket, { op: "reload" }, signal);
    },
    async observe(instance, signal) {
      try {
        const { version, parameters } = await send<Info>(memberOf(instance), { op: "info" }, signal);
        const desired = instance.spec.parameters["shards"] ?? "1";
        const pendingRestart = parameters["shards"] === desired ? [] : ["shards"];
        const checks: EngineCheck[] = [{ name: "liveness", status: "healthy", reason: "" }];
        return { responded: true, version, checks, pendingRestart, effectiveParameters: parameters, dataBytes: 0 };
      } catch {
        const checks: EngineCheck[] = [
          { name: "liveness", status: "unhealthy", reason: "The engine does not listen for connections." },
        ];
        return { responded: false, version: "", checks, pendingRestart: [], effectiveParameters: {}, dataBytes: 0 };
      }
    },
    parseLog(line) {
      const match = /^(\S+Z) (debug|info|warning|error) (.*)$/.exec(line);
      if (match === null) return undefined;
      const [, time = "", level = "info", message = ""] = match;
      return { time: new Date(time), level: level as "info", message };
    },
    explainFailure: (output) => ({ cause: "unknown", message: output, parameter: undefined }),
    users,
    backup: createClusterBackup(memberOf),
  };
}

const usersIn = (instance: Instance, signal: AbortSignal) =>
  send<Record<string, User>>(memberOf(instance), { op: "users" }, signal);

const users: UsersFacet = {
  async list(instance, signal) {
    const all = Object.entries(await usersIn(instance, signal)).sort(([a], [b]) => (a < b ? -1 : 1));
    return all.map(([username, { role }]) => create(EngineUserStateSchema, { username, role }));
  },
  async put(instance, { username, role, verifier }, signal) {
    if (username.startsWith("holdfast")) throw new EngineRefused(`The name ${username} is reserved for the platform.`);
    const before = (await usersIn(instance, signal))[username];
    if (before?.role === role && before.verifier === verifier) return { changed: false, role };
    await send(memberOf(instance), { op: "putUser", username, role, verifier }, signal);
    return { changed: true, role };
  },
  async drop(instance, username, signal) {
    if (username === "app_user") throw new EngineRefused(`The user ${username} cannot be dropped.`);
    if ((await usersIn(instance, signal))[username] === undefined) return { existed: false };
    await send(memberOf(instance), { op: "dropUser", username }, signal);
    await send(frontOf(instance), { op: "endSessions", username }, signal);
    return { existed: true };
  },
  async check(instance, username, verifier, signal) {
    const user = (await usersIn(instance, signal))[username];
    return { exists: user !== undefined, matches: user?.verifier === verifier };
  },
  async settled(instance, { username, verifier }, signal) {
    const user = (await usersIn(instance, signal))[username];
    return { exists: user !== undefined, matches: user?.verifier === verifier, role: user?.role ?? "" };
  },
};
