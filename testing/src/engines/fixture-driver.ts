import { create } from "@bufbuild/protobuf";
import { EngineUserStateSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { EngineDriver, Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { EngineRefused } from "@holdfast/agent/engines/engine-errors.ts";
import { waitUntil } from "../wait-until.ts";

/** Reply of the fixture engine. */
interface EngineReply {
  readonly pid: number;
  readonly parameters: Record<string, string>;
  readonly certificate: string;
}

/** Driver of fixture-engine.ts, for tests of the agent without a database engine. It has users and no databases. */
export function createFixtureDriver(signalEngine: (signal: NodeJS.Signals) => Promise<void>): EngineDriver {
  const dataOf = ({ paths }: Instance) => join(paths.data, "fixture");
  return {
    engine: "valkey",
    topology: "primary_replicas",
    stop: { signal: "SIGTERM", graceMs: 2_000 },
    software: (version) => `/fixture/${version}`,
    fingerprint: async (software) =>
      software === "/fixture/1"
        ? { present: true, version: "1" }
        : { present: false, reason: `Nothing is installed at ${software}.` },
    render: ({ spec }) => {
      const { address, port, allowedCidrs } = spec;
      const parameters = parametersOf(spec, (name) => !isStored(name));
      return [
        { name: "fixture.json", content: JSON.stringify({ address, port, parameters, allowedCidrs }), mode: 0o600 },
      ];
    },
    listeners: ({ spec }) => [{ address: spec.address, port: spec.port }],
    async bootstrap(instance) {
      await mkdir(dataOf(instance), { recursive: true });
      if (!existsSync(join(dataOf(instance), "data"))) await writeFile(join(dataOf(instance), "data"), "");
    },
    command: (instance) => ({
      argv: [
        process.execPath,
        join(import.meta.dirname, "fixture-engine.ts"),
        join(instance.paths.config, "fixture.json"),
        join(dataOf(instance), "data"),
        instance.paths.tls,
      ],
      env: {},
      cwd: dataOf(instance),
    }),
    async ready(instance, signal) {
      const isReady = async () => {
        await queryEngine(instance, "write", signal);
        await storeParameters(instance, signal);
        return true;
      };
      await waitUntil("the engine responds", isReady, { everyMs: 20, withinMs: Number.POSITIVE_INFINITY, signal });
    },
    async reload(instance, signal) {
      if (instance.spec.parameters["refused"] !== undefined) throw new EngineRefused("refused is not a parameter");
      const [config, read] = [join(instance.paths.config, "fixture.json"), `${join(dataOf(instance), "data")}.read`];
      await rm(read, { force: true });
      await signalEngine("SIGHUP");
      const hasRead = async () => (await readFile(read, "utf8").catch(() => "")) === (await readFile(config, "utf8"));
      const unlimited = { everyMs: 5, withinMs: Number.POSITIVE_INFINITY, signal };
      await waitUntil("the engine has read its configuration", hasRead, unlimited);
      await storeParameters(instance, signal);
    },
    async observe(instance, signal) {
      const { parameters } = await queryEngine(instance, "write", signal);
      return {
        responded: true,
        version: "1",
        checks: [{ name: "liveness", status: "healthy", reason: "" }],
        pendingRestart: parameters["at_start"] === instance.spec.parameters["at_start"] ? [] : ["at_start"],
        effectiveParameters: parameters,
        dataBytes: 0,
      };
    },
    parseLog(line) {
      const match = /^(\S+) (debug|info|warning|error) (.*)$/.exec(line);
      if (match === null) return undefined;
      const [, time = "", level, message = ""] = match;
      return { time: new Date(time), level: level as "info", message };
    },
    explainFailure: (output) => ({ cause: "unknown", message: output.split("\n").at(-1) ?? "", parameter: undefined }),
    // The data have no version; the parameter `unfinished` simulates an upgrade whose last step fails.
    upgrade: {
      versionOf: async () => undefined,
      retainedVersionOf: async ({ spec }) => (spec.parameters["unfinished"] === undefined ? undefined : "0"),
      async finish() {
        throw new Error("the upgrade is not finished");
      },
      discardRetained: async () => undefined,
      check: async () => [],
      upgrade: () => Promise.reject(new Error("there is nothing to upgrade")),
      rollBack: () => Promise.reject(new Error("there is nothing to roll back to")),
    },
    users: {
      list: async () => [create(EngineUserStateSchema, { username: "app_user", role: "admin" })],
      put: async (_instance, user) => {
        if (user.username === "bad") throw new EngineRefused("role bad is reserved");
        return { changed: true, role: user.role };
      },
      drop: async () => ({ existed: false }),
      check: async () => ({ exists: false, matches: false }),
      settled: async () => ({ exists: false, matches: false, role: "" }),
    },
  };
}

/** Parameters `stored_*` are in no file: the engine gets them by a request. */
const isStored = (name: string): boolean => name.startsWith("stored_");
const parametersOf = ({ parameters }: Instance["spec"], isMeant: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(parameters).filter(([name]) => isMeant(name)));

async function storeParameters(instance: Instance, signal: AbortSignal): Promise<void> {
  await queryEngine(instance, `store ${JSON.stringify(parametersOf(instance.spec, isStored))}`, signal);
}

export function queryEngine(
  instance: Pick<Instance, "spec">,
  request: string,
  signal: AbortSignal,
): Promise<EngineReply> {
  const { address, port } = instance.spec;
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, signal });
    let text = "";
    socket.setEncoding("utf8");
    socket.on("data", (part: string) => {
      text += part;
    });
    socket.on("error", reject);
    socket.on("end", () => (text === "" ? reject(new Error("no answer")) : resolve(JSON.parse(text) as EngineReply)));
    socket.write(`${request}\n`);
  });
}
