import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, readdirSync, readFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { chown, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { EngineDriver, Instance } from "@holdfast/agent/engines/engine-driver.ts";
import type { EngineDeps } from "@holdfast/agent/engines/engine-deps.ts";
import { type PipeProgram, pipeProgram } from "@holdfast/agent/os/pipe-program.ts";
import { runProgram } from "@holdfast/agent/os/program.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { pemOf } from "@holdfast/controller/kernel/pki/authority-record.ts";
import { exportKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { Program } from "@holdfast/image/catalog.ts";
import { dyingWithParent, inImage, type Launch, programPid } from "@holdfast/image/in-image.ts";
import { findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { freePorts } from "../platform/free-ports.ts";
import { argumentsAndEnvironment } from "../platform/platform-processes.ts";
import { asRoot, programDirectory, testUid } from "../platform/platform-software.ts";
import { createTestAuthority } from "../controller/test-authority.ts";
import { hasSoftware } from "./required-recipes.ts";

/** An engine on a machine without keeper and agent: the driver's programs run in the node image. */
export interface EngineMachine {
  readonly driver: EngineDriver;
  /** The driver's view of the engine; `change` sets other settings. */
  readonly instance: Instance;
  readonly signal: AbortSignal;
  /** PEM of the authority that signed the engine's certificate for `serverName`. */
  readonly ca: string;
  readonly serverName: string;
  change(spec: Partial<InstanceSpec>): void;
  /** Creates the data directory, owned by the machine's own user. */
  bootstrap(): Promise<void>;
  /** Writes the files that the driver renders, for another state of the instance if one is given. */
  writeConfig(instance?: Instance): Promise<void>;
  /** Starts the engine and its companions. */
  start(): Promise<void>;
  /** Starts companions that the engine has since its settings changed. */
  startCompanions(): Promise<void>;
  /**
   * Bootstraps the engine, writes its settings, starts it, and waits until it accepts connections; throws with its
   * output.
   */
  bringUp(): Promise<void>;
  /** Ends the engine and its companions with the driver's signal, or with another. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Pauses the engine; the returned function resumes it. */
  pause(): () => void;
  /**
   * Does the work of a component that runs as the engine's user, in the test's own process: programs that it runs own
   * the files that the process created before.
   */
  asComponent<T>(work: () => Promise<T>): Promise<T>;
  /** Runs a program of the engine's image, such as a benchmark; resolves with its output. */
  run: EngineDeps["run"];
  /** Output of all processes of the engine since the start. */
  output(): string;
  remove(): Promise<void>;
}

const serverName = "orders-1.local.holdfast.test";

/** True if an image with this version exists. */
export function hasEngine(engine: Program, version: string): boolean {
  return hasSoftware(engine, version);
}

/** Wraps command lines of an engine's programs for the machine in this directory. */
type CommandWrapper = (engine: Program, version: string, directory: string) => (argv: readonly string[]) => Launch;

const inNodeImage: CommandWrapper = (engine, version, directory) => {
  const found = findSoftware(imagesDirectory(process.env), engine, version);
  if (found === undefined) throw new Error(`no image with ${engine} ${version}: run holdfast images make sid`);
  const ofNode = [dirname(dirname(process.execPath)), join(import.meta.dirname, "../../..")];
  return (argv) => {
    // Companions in JavaScript: images have neither the program nor the checkout.
    const binds = argv[0] === process.execPath ? [directory, ...ofNode] : [directory];
    return inImage(found.image.root, { argv, uid: testUid, binds, asRoot });
  };
};

/** Command wrapper of an engine that is part of the tests, and so runs outside of an image. */
export const onThisHost: CommandWrapper = () => dyingWithParent;

/** An empty machine. Only this test uses `address`, so that connections from other addresses are distinguishable. */
export async function createEngineMachine(
  load: (deps: EngineDeps) => Promise<EngineDriver>,
  engine: Program,
  version: string,
  settings: Omit<Partial<InstanceSpec>, "$typeName" | "$unknown"> = {},
  place: CommandWrapper = inNodeImage,
): Promise<EngineMachine> {
  const directory = programDirectory(`holdfast-${engine}`);
  const launch = place(engine, version, directory);
  const paths = machinePaths(directory);
  let components = 0;
  const giveData = () => components > 0 && asRoot && giveAll(paths.data);
  const run: EngineDeps["run"] = (argv, options) => {
    giveData();
    const { command, args } = launch(argv);
    return runProgram([command, ...args], options);
  };
  const pipe: PipeProgram = (argv, options) => {
    giveData();
    const { command, args } = launch(argv);
    const piped = pipeProgram([command, ...args], options);
    return { ...piped, signal: (name) => signalChild(argv, name) };
  };
  const driver = await load({ run, runAsEngine: run, pipe, randomBytes });
  const all = { ...paths, software: driver.software(version), log: join(paths.data, "engine.log") };
  const [port = 0] = await freePorts(1);
  for (const path of [paths.data, paths.config, paths.tls, paths.run]) await give(path, undefined);
  let spec = create(InstanceSpecSchema, {
    serviceId: "service",
    nodeId: "node",
    engine,
    version,
    running: true,
    vcpu: 1,
    memoryBytes: 1n << 30n,
    storageBytes: 1n << 33n,
    allowedCidrs: ["127.0.0.0/8"],
    address: "127.0.0.1",
    port,
    databases: engineOf(engine)?.hasDatabases === true ? ["defaultdb"] : [],
    ...settings,
  });
  const ca = await writeCertificate(paths.tls);
  let children: Child[] = [];
  let started: string[] = [];
  let output = "";

  const begin = (argv: readonly string[], env: Readonly<Record<string, string>>): Child => {
    const { command, args } = launch(argv);
    const process_ = spawn(command, args, {
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    const ended = new Promise<void>((resolve) => process_.once("close", () => resolve()));
    for (const stream of [process_.stdout, process_.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    return { process: process_, ended };
  };

  const companions = () => (driver.companions?.(machine.instance) ?? []).filter(({ isEnabled }) => isEnabled !== false);

  const machine: EngineMachine = {
    driver,
    get instance() {
      return { spec, paths: all };
    },
    get signal() {
      return AbortSignal.timeout(120_000);
    },
    ca,
    serverName,
    change(changes) {
      spec = { ...spec, ...changes };
    },
    async bootstrap() {
      await driver.bootstrap(machine.instance, machine.signal);
      if (asRoot) giveAll(paths.data);
    },
    async asComponent(work) {
      components += 1;
      try {
        return await work();
      } finally {
        giveData();
        components -= 1;
      }
    },
    async writeConfig(instance = machine.instance) {
      for (const { name, content } of driver.render(instance)) await give(join(paths.config, name), content);
    },
    async start() {
      output = "";
      const { argv, env } = driver.command(machine.instance);
      children = [begin(argv, env)];
      started = [];
      await machine.startCompanions();
    },
    async startCompanions() {
      const missing = companions().filter(({ name }) => !started.includes(name));
      children.push(...missing.map(({ command }) => begin(command.argv, command.env)));
      started.push(...missing.map(({ name }) => name));
    },
    async bringUp() {
      await machine.bootstrap();
      await machine.writeConfig();
      await machine.start();
      await driver.ready(machine.instance, machine.signal).catch((error: unknown) => {
        throw new Error(output, { cause: error });
      });
    },
    async stop(signal) {
      const signals = [driver.stop.signal, ...companions().map(({ stop }) => stop.signal)];
      for (const [index, child] of [...children.entries()].reverse())
        await end(child, signal ?? signals[index] ?? "SIGTERM");
      children = [];
    },
    pause() {
      const pid = programPid(children[0]?.process.pid ?? 0);
      if (pid === undefined) throw new Error("the engine does not run");
      process.kill(pid, "SIGSTOP");
      return () => void process.kill(pid, "SIGCONT");
    },
    run,
    output: () => output,
    async remove() {
      for (const child of children) await end(child, "SIGKILL");
      await rm(directory, { recursive: true, force: true });
    },
  };
  return machine;
}

function machinePaths(directory: string) {
  const under = (name: string) => join(directory, name);
  return { data: under("data"), config: under("config"), tls: under("tls"), run: under("run") };
}

/** Gives all files below a directory to the engine's user; ignores files that the engine deletes at the same time. */
function giveAll(directory: string): void {
  for (const entry of ignoreMissing(() => readdirSync(directory, { withFileTypes: true })) ?? []) {
    const path = join(directory, entry.name);
    ignoreMissing(() => chownSync(path, testUid, testUid));
    if (entry.isDirectory()) giveAll(path);
  }
}

function ignoreMissing<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

interface Child {
  readonly process: ChildProcess;
  readonly ended: Promise<void>;
}

async function end({ process: child, ended }: Child, signal: NodeJS.Signals): Promise<void> {
  const pid = programPid(child.pid ?? 0);
  if (pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(pid, signal);
  await ended;
}

/** The program that enters the namespaces ignores signals: they are for the program itself. */
function signalChild(argv: readonly string[], signal: NodeJS.Signals): void {
  const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .map(Number);
  for (const child of children) {
    if (!argumentsAndEnvironment(child).cmdline.endsWith(`${argv.join("\0")}\0`)) continue;
    const pid = programPid(child);
    if (pid !== undefined) process.kill(pid, signal);
  }
}

/** Creates a file, or a directory without content, that the engine's user owns. */
async function give(path: string, content: string | undefined): Promise<void> {
  if (content === undefined) await mkdir(path, { recursive: true, mode: 0o700 });
  else await writeFile(path, content, { mode: 0o600 });
  if (asRoot) await chown(path, testUid, testUid);
}

async function writeCertificate(directory: string): Promise<string> {
  const [authority, keys] = await Promise.all([createTestAuthority(), newKeyPair()]);
  const { publicKey, privateKey } = keys;
  // Members of a service are each other's clients.
  const leaf = await authority.issue({ commonName: serverName, names: [serverName], publicKey, client: true });
  await give(join(directory, "server.key"), await exportKey(privateKey));
  await give(join(directory, "server.crt"), pemOf(leaf.der));
  await give(join(directory, "ca.crt"), authority.trustBundle);
  return authority.trustBundle;
}
