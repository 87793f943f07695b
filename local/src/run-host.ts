import { readFileSync } from "node:fs";
import { join } from "node:path";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { type JoinFile, parseJoinFile } from "@holdfast/common/join-file.ts";
import { HostRefused } from "@holdfast/host/host-calls.ts";
import { joinHost } from "@holdfast/host/join-host.ts";
import { cacheDirectory, imagesDirectory } from "@holdfast/image/node-image.ts";
import { createBlockClaims } from "./block-claims.ts";
import { openBoundedLog } from "./bounded-log.ts";
import { type Child, type ChildSpec, nodejsProcess, startChild } from "./child.ts";
import { createMachineHost } from "./create-machine-host.ts";
import { isHandover } from "./handover.ts";
import {
  deleteHostInstallation,
  type HostInstallation,
  hasJoined,
  hostIdentityDirectory,
  machineBlockOf,
  openHostInstallation,
} from "./host-installation.ts";
import type { HostOptions } from "./host-options.ts";
import { type Layout, layoutOf, makeHostDirectories } from "./layout.ts";
import { machineGraceMs } from "./platform.ts";
import { listenProblem } from "./ports.ts";
import { recordServing } from "./serving-record.ts";
import { ensureNodeImage } from "./software.ts";
import { takeSupervisorLock } from "./supervisor-lock.ts";
import { aborted } from "./up.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

/**
 * Joins this machine as a host if it has not joined yet, and runs it until the signal fires; then stops its machines in
 * order.
 */
export async function runHost(options: HostOptions, deps: UpDeps, signal: AbortSignal): Promise<void> {
  const { checkout, environment, clock, print } = deps;
  const layout = layoutOf(options.dataDir);
  const joinFile = options.joinFile ?? (hasJoined(layout) ? undefined : options.firstJoinFile);
  const file = joinFile === undefined ? undefined : readJoinFile(joinFile);
  const imagesDir = imagesDirectory(environment);
  await ensureNodeImage({ imagesDir, print, signal });
  const programs = await deps.programs();
  makeHostDirectories(layout);
  const lock = takeSupervisorLock(layout.run);
  if (!lock.taken)
    throw new UserError(
      `${layout.root} is in use: process ${lock.pid} runs this host; Ctrl-C there or \`kill ${lock.pid}\` stops it`,
    );
  try {
    const installation = await joined(layout, options, file, deps, signal);
    const machineHost = createMachineHost(layout, installation, environment);
    await machineHost.install(print, signal);
    const children: Child[] = [];
    const launch = (spec: ChildSpec) => {
      signal.throwIfAborted();
      const log = openBoundedLog(join(layout.log, `${spec.name}.log`), { maxBytes: 16 << 20, filesMax: 3 });
      const child = startChild(spec, { log, print, monotonicMs: clock.monotonicMs });
      children.unshift(child);
      return child.ready;
    };
    const { daemon } = machineHost;
    let endServing: (() => void) | undefined;
    try {
      if (daemon !== undefined) await launch(daemon);
      await machineHost.open(signal);
      const compileCache = join(cacheDirectory(environment), "compile-cache");
      const program = nodejsProcess(
        "host",
        programs.host,
        { NODE_COMPILE_CACHE: compileCache, ...environment },
        {
          HOLDFAST_HOST_LISTEN: installation.host.listen,
          HOLDFAST_HOST_STATE_DIR: hostIdentityDirectory(layout),
          HOLDFAST_PROCESS_DIR: layout.root,
          ...machineHost.settings,
          HOLDFAST_IMAGES_DIR: imagesDir,
        },
      );
      await launch({ ...program, ready: /"msg":"serving"/ });
      print(
        `host ${installation.host.id} serves at ${installation.host.listen}. Ctrl-C stops it and retains all data.`,
      );
      endServing = recordServing(layout.run, checkout);
      await aborted(signal);
    } finally {
      print("stopping");
      endServing?.();
      const keepsMachines = isHandover(signal);
      const [program] = children.filter(({ name }) => name === "host");
      await program?.stop();
      if (!keepsMachines && (daemon === undefined || children.length > 0))
        await machineHost.stopMachines(machineGraceMs);
      for (const child of children) if (child !== program) await child.stop(keepsMachines ? "SIGKILL" : undefined);
      print("stopped; `npm start -- host` continues from the same state");
    }
  } finally {
    lock.release();
  }
}

async function joined(
  layout: Layout,
  options: HostOptions,
  file: JoinFile | undefined,
  { clock, print, registryDir }: UpDeps,
  signal: AbortSignal,
): Promise<HostInstallation> {
  const claims = createBlockClaims(registryDir, clock.now);
  const { installation, isNew } = await openHostInstallation(layout, claims, options, file);
  try {
    await checkListen(installation.host.listen, clock);
    if (file === undefined) return installation;
    await joinHost(
      {
        stateDir: hostIdentityDirectory(layout),
        join: file,
        addressBlock: machineBlockOf(installation),
        now: clock.now,
        random: Math.random,
      },
      signal,
    );
    print(`this is host ${installation.host.id} of installation ${installation.id}; the join file is used up`);
    return installation;
  } catch (error) {
    if (isNew) deleteHostInstallation(layout, claims, installation);
    throw error instanceof HostRefused ? new UserError(`not joined: ${error.message}`) : error;
  }
}

function readJoinFile(path: string): JoinFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UserError(`--join: ${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  try {
    return parseJoinFile(text);
  } catch (error) {
    throw new UserError(`--join: ${path} is not a join file: ${(error as Error).message}`);
  }
}

/** Waits up to 3 s: the kernel may still be ending a killed program. */
async function checkListen(listen: string, clock: UpDeps["clock"]): Promise<void> {
  const { host, port } = endpointOf(listen);
  const deadline = clock.now() + 3_000;
  for (;;) {
    const problem = await listenProblem(host, port);
    if (problem === undefined) return;
    if (problem === "EADDRINUSE" && clock.now() < deadline) {
      await clock.sleep(50);
      continue;
    }
    const why =
      problem === "EADDRINUSE" ? "another process listens there" : `it is not an address of this machine (${problem})`;
    throw new UserError(`${listen}: ${why}; choose another with --listen`);
  }
}
