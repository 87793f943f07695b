import { type ChildProcess, spawn } from "node:child_process";
import { chmod, chown, mkdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import { readIfExists } from "@holdfast/common/durable-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import { runProgram } from "@holdfast/common/run-program.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { recipeOf } from "@holdfast/image/catalog.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { type Launch, programPid } from "@holdfast/image/in-image.ts";
import { ensureImage } from "@holdfast/image/make-image.ts";
import { findPlatformProgram } from "@holdfast/image/platform-program.ts";
import { tokenService } from "./access-token.ts";
import type { ImageStorage } from "./image-storage.ts";
import { createImageSweep } from "./image-sweep.ts";
import { moveLocalImages } from "./local-images.ts";

/**
 * Debian's docker-registry as a child of this process. It listens on a socket in the file system, as a user that has
 * only its own directory and its part of the object store, and starts with the first request: an installation without
 * apps has no such process. It ends when there was no request for some minutes. An hour later, images that nothing
 * needs are deleted, while no push is in progress at any registry with the same images; a request in the meantime ends
 * that.
 */
export interface RegistryProgram {
  /**
   * Runs the function with the path of the socket, and the program running until the function ends. Rejects with
   * NotInstalled if this host cannot have it.
   */
  use<T>(work: (socket: string) => Promise<T>): Promise<T>;
  /** Moves images of an earlier release into the object store, which the first request would otherwise wait for. */
  prepare(): Promise<void>;
  /** Deletes images that nothing needs. Resolves with false if this or another registry with its images is in use. */
  sweep(): Promise<boolean>;
  /** Remembers that a deletion left layers behind. */
  markGarbage(): Promise<void>;
  stop(): Promise<void>;
}

/** The host cannot have the program; the message says why. */
export class NotInstalled extends Error {}

export interface RegistryProgramDeps {
  readonly directory: string;
  readonly uid: number;
  readonly imagesDir: string;
  readonly storage: ImageStorage;
  /** Secret by which docker-registry recognizes its uploads; all registries of the same images have it. */
  readonly uploadSecret: string;
  /** Selects the digests that a deployment has. Rejects if no controller responds. */
  readonly neededOf: (digests: readonly string[]) => Promise<readonly string[]>;
  readonly now: () => number;
  /** Certificate that tokens are verified by, PEM. */
  readonly certificate: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
}

const [program, version] = ["registry", "2"] as const;
const idleMs = 10 * 60_000;
/** Time without a request after which no push is in progress. */
const sweepAfterMs = 60 * 60_000;
const sweepEveryMs = 24 * 3_600_000;
/** Directories that one command deletes: the kernel limits the length of its arguments. */
const deletedAtOnce = 100;
const startTimeoutMs = 30_000;
const pollMs = 20;
const graceMs = 5_000;

export function createRegistryProgram(deps: RegistryProgramDeps): RegistryProgram {
  const { directory, uid, imagesDir, storage, log } = deps;
  const asRoot = process.getuid?.() === 0;
  /** The only directory here that belongs to the program. */
  const runDirectory = join(directory, "run");
  const socket = join(runDirectory, "registry.sock");
  const configFile = join(directory, "config.json");
  const garbageFile = join(directory, "garbage");
  let running: ChildProcess | undefined;
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;
  let preparing: Promise<void> | undefined;
  let sweeping: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;
  let users = 0;
  let idle: NodeJS.Timeout | undefined;
  let nextSweep: NodeJS.Timeout | undefined;
  const imageSweep = createImageSweep({
    objects: storage.objects,
    neededOf: deps.neededOf,
    deleteDirectories: deleteAsUser,
    stateFile: join(directory, "unneeded-images.json"),
    now: deps.now,
  });

  async function launchOf(
    argv: readonly string[],
    binds = [directory, ...(storage.directory === undefined ? [] : [storage.directory])],
  ): Promise<Launch> {
    const recipe = recipeOf(program, version);
    try {
      if (recipe !== undefined)
        await ensureImage({ imagesDir, recipe, progress: (line) => log.info("image", { progress: line }) });
    } catch (error) {
      if (!(error instanceof ImageImpossible)) throw error;
      log.warn("no image with docker-registry", { reason: error.message });
    }
    const found = findPlatformProgram(imagesDir, program, version, deps.environment);
    if (found === undefined) throw new NotInstalled("this installation has no docker-registry");
    const [name = "", ...words] = argv;
    const executable = name.startsWith("docker-") ? found.executable(name) : name;
    return found.launch({ argv: [executable, ...words], uid, binds, asRoot });
  }

  async function runAsUser(argv: readonly string[], directories: readonly string[]): Promise<void> {
    const { command, args } = await launchOf(argv, [...directories]);
    await runProgram(command, args, { cwd: "/" });
  }

  /** Deletes as the user of docker-registry, which a symbolic link in its directory gives no other files. */
  async function deleteAsUser(names: readonly string[]): Promise<void> {
    const { directory: images } = storage;
    // Before the deletion, which a crash or a request may interrupt.
    if (names.length > 0 && (await garbage()) === undefined) await writeFile(garbageFile, sweptMark, { mode: 0o600 });
    if (images === undefined) return deleteInBucket(names);
    for (let from = 0; from < names.length; from += deletedAtOnce) {
      const paths = names.slice(from, from + deletedAtOnce).map((name) => join(images, name));
      await runAsUser(["rm", "-rf", "--", ...paths], [images]);
    }
  }

  async function deleteInBucket(names: readonly string[]): Promise<void> {
    const { objects, leases } = storage;
    for (const name of names)
      for (let more = true; more; ) {
        const page = await objects.list(`${name}/`, { limit: 1_000 });
        for (const { key } of page.objects) {
          if (leases?.maySweep() !== true) throw new Error("another registry may use the bucket");
          await objects.delete(key);
        }
        ({ more } = page);
      }
  }

  /** Resolves with the variables that belong to the configuration. */
  async function writeFiles(): Promise<Readonly<Record<string, string>>> {
    const driver = await storage.open();
    await mkdir(runDirectory, { recursive: true, mode: 0o700 });
    const authorities = join(directory, "token-authorities.pem");
    const config = {
      version: 0.1,
      log: { level: "warn", accesslog: { disabled: true } },
      storage: {
        ...driver.configuration,
        delete: { enabled: true },
        maintenance: { uploadpurging: { enabled: true, age: "24h", interval: "1h", dryrun: false } },
      },
      http: { net: "unix", addr: socket, relativeurls: true },
      auth: {
        token: {
          // Required, and replaced: clients are sent to /auth/token of the host that they called.
          realm: "https://localhost/auth/token",
          autoredirect: true,
          service: tokenService,
          issuer: tokenService,
          rootcertbundle: authorities,
        },
      },
    };
    await writeFile(authorities, deps.certificate, { mode: 0o644 });
    await writeFile(configFile, JSON.stringify(config), { mode: 0o644 });
    // The program reads its configuration, and writes only its images and its socket: this process writes no file where
    // a link of the program could lead elsewhere.
    await chmod(directory, 0o755);
    if (asRoot) await chown(runDirectory, uid, uid);
    await rm(socket, { force: true });
    return { ...driver.environment, REGISTRY_HTTP_SECRET: deps.uploadSecret };
  }

  /** A failure is repeated before the next start: images are served with or without garbage. */
  async function collectGarbage(secrets: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<void> {
    const { command, args } = await launchOf(["docker-registry", "garbage-collect", configFile]);
    signal?.throwIfAborted();
    const env = { PATH: deps.environment["PATH"], ...secrets };
    const collecting = runProgram(command, args, { cwd: "/", maxBuffer: 64 << 20, env });
    // The promise settles once the program has ended, so that it never runs beside the server.
    const kill = () => {
      collecting.child.kill("SIGKILL");
    };
    signal?.addEventListener("abort", kill);
    try {
      await collecting;
      await rm(garbageFile, { force: true });
      log.info("garbage collected", {});
    } catch (error) {
      if (signal?.aborted !== true) log.error("garbage not collected", { error });
    } finally {
      signal?.removeEventListener("abort", kill);
    }
  }

  const markGarbage = () => writeFile(garbageFile, "", { mode: 0o600 });
  /** Layers of a sweep wait for the next one: requests wait only for what a user deleted, to make room. */
  const sweptMark = "swept";
  const garbage = async () => (await readIfExists(garbageFile))?.toString("utf8");

  async function sweepImages(signal: AbortSignal): Promise<void> {
    await prepare();
    const secrets = await writeFiles();
    const deleted = await imageSweep.run(signal);
    if (deleted > 0) log.info("images deleted that nothing needs", { deleted });
    if ((await garbage()) !== undefined) await collectGarbage(secrets, signal);
  }

  /** Sweeps while no other registry with the same images is in use; false if one is. */
  async function sweepAlone(signal: AbortSignal): Promise<boolean> {
    const { leases } = storage;
    if (leases === undefined) {
      await sweepImages(signal);
      return true;
    }
    await leases.leave();
    return leases.sweep(sweepImages, signal);
  }

  async function sweep(): Promise<boolean> {
    const isInUse = users > 0 || [running, starting, stopping, sweeping].some((each) => each !== undefined);
    if (isInUse) return false;
    const abort = new AbortController();
    let isSwept = false;
    const ended = sweepAlone(abort.signal)
      .then((isDone) => {
        isSwept = isDone;
      })
      .catch((error: unknown) => {
        if (!abort.signal.aborted) log.warn("images not swept", { error });
      })
      .finally(() => {
        sweeping = undefined;
      });
    sweeping = { abort, ended };
    await ended;
    return isSwept;
  }

  function sweepAfter(ms: number): void {
    clearTimeout(nextSweep);
    const swept = () =>
      inBackground(
        log,
        "sweep of images",
        sweep().then((isSwept) => sweepAfter(isSwept ? sweepEveryMs : sweepAfterMs)),
      );
    nextSweep = setTimeout(swept, ms).unref();
  }

  function prepare(): Promise<void> {
    const moved = async () => {
      await storage.open();
      await moveLocalImages({ from: join(directory, "images"), storage, runAsUser, log });
    };
    preparing ??= moved().catch((error: unknown) => {
      preparing = undefined;
      throw error;
    });
    return preparing;
  }

  async function start(): Promise<void> {
    await stopping;
    await sweeping?.ended;
    // A registry with the same images sweeps no more: uploads have layers that no image has yet.
    await storage.leases?.enter();
    await prepare();
    const secrets = await writeFiles();
    if (storage.leases === undefined && (await garbage()) === "") await collectGarbage(secrets);
    const { command, args } = await launchOf(["docker-registry", "serve", configFile]);
    const env = { PATH: deps.environment["PATH"], ...secrets };
    const child = spawn(command, args, { cwd: "/", env, stdio: ["ignore", "inherit", "inherit"], detached: true });
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => undefined);
    child.once("error", (error) => ended.reject(error));
    child.once("exit", (code, signal) => {
      if (running === child) running = undefined;
      log.info("docker-registry ended", { code, signal });
      ended.reject(new Error("docker-registry ended before it listened"));
    });
    running = child;
    try {
      await Promise.race([untilAccepts(socket), ended.promise]);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
    log.info("docker-registry started", {});
  }

  async function end(): Promise<void> {
    const child = running;
    if (child?.pid === undefined) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    const pid = programPid(child.pid);
    try {
      if (pid !== undefined) process.kill(pid, "SIGTERM");
    } catch (error) {
      // It ended by itself before the signal.
      if (!hasCode(error, "ESRCH")) throw error;
    }
    const force = setTimeout(() => child.kill("SIGKILL"), graceMs);
    await exited;
    clearTimeout(force);
  }

  function stop(): Promise<void> {
    clearTimeout(idle);
    clearTimeout(nextSweep);
    sweeping?.abort.abort();
    stopping ??= (starting ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => sweeping?.ended)
      .then(end)
      .catch((error: unknown) => log.error("docker-registry not stopped", { error }))
      .finally(() => {
        stopping = undefined;
      });
    return stopping;
  }

  return {
    async use(work) {
      users += 1;
      clearTimeout(idle);
      sweeping?.abort.abort();
      try {
        if (running === undefined || stopping !== undefined)
          starting ??= start().finally(() => {
            starting = undefined;
          });
        await starting;
        // A registry that could not renew its lease for long may not use the bucket before a sweep has ended.
        await storage.leases?.enter();
        return await work(socket);
      } finally {
        users -= 1;
        if (users === 0) {
          clearTimeout(idle);
          idle = setTimeout(
            () =>
              inBackground(
                log,
                "stop of docker-registry",
                stop().then(() => sweepAfter(sweepAfterMs - idleMs)),
              ),
            idleMs,
          ).unref();
        }
      }
    },
    async prepare() {
      sweepAfter(sweepAfterMs);
      await prepare();
    },
    sweep,
    markGarbage,
    stop,
  };
}

/** Resolves once a program accepts connections on the socket. */
async function untilAccepts(path: string): Promise<void> {
  const limit = AbortSignal.timeout(startTimeoutMs);
  while (!(await accepts(path))) await sleep(pollMs, undefined, { signal: limit });
}

function accepts(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(path);
    connection.once("connect", () => {
      connection.destroy();
      resolve(true);
    });
    connection.once("error", () => resolve(false));
  });
}
