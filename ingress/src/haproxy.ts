import { type ChildProcess, spawn } from "node:child_process";
import { chmod, chown, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { recipeOf } from "@holdfast/image/catalog.ts";
import { inImage, programPid } from "@holdfast/image/in-image.ts";
import { ensureImage } from "@holdfast/image/make-image.ts";
import { findSoftware } from "@holdfast/image/node-image.ts";
import { type CertificateFile, certificateFiles, replaceCertificate } from "./certificate-store.ts";
import { type HaproxyFiles, runCommands, sendCommand } from "./haproxy-commands.ts";
import { challengeLines, haproxyConfig, hostLines, loginLines } from "./haproxy-config.ts";
import type { RouteTable } from "./route-table.ts";

/** Key and certificate chain of the ingress, PEM. */
export interface Certificate {
  readonly key: string;
  readonly certificate: string;
}

export interface HaproxyDeps {
  readonly listen: readonly string[];
  readonly redirectListen: readonly string[];
  /** host:port of a server for challenges of hosts without an app; empty: none. */
  readonly challengesServer: string;
  readonly connections: number;
  readonly directory: string;
  /** Private key of domains of users, PEM. */
  readonly hostKey: string;
  readonly uid: number;
  readonly imagesDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called when the process ends without a request. */
  readonly onEnd: () => void;
  readonly log: Log;
}

/**
 * HAProxy as a child of this process, in the node image of apps and as a user that has only its own directory. A new
 * process takes over the listeners beside the old one, which finishes its requests.
 */
export interface Haproxy {
  readonly isRunning: boolean;
  /** Starts a process with these routes, in place of the running one. Rejects if it does not respond. */
  start(table: RouteTable, certificate: Certificate): Promise<void>;
  /** Replaces the certificate of the running process, without an effect on open connections. */
  renew(certificate: Certificate): Promise<void>;
  /** Sends commands to the running process. Rejects if it does not accept one. */
  run(commands: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

const [software, version] = ["app", "1"] as const;
const executable = "/usr/sbin/haproxy";
const startTimeoutMs = 30_000;
const commandTimeoutMs = 10_000;
const pollMs = 20;
const graceMs = 5_000;

interface Running {
  readonly child: ChildProcess;
  readonly socket: string;
  readonly ended: Promise<void>;
}

/** The files that commands name. `hostKey`: private key of domains of users, PEM. */
export function haproxyFilesBelow(directory: string, hostKey: string): HaproxyFiles {
  return {
    hostsFile: join(directory, "hosts.map"),
    loginsFile: join(directory, "logins.map"),
    challengesFile: join(directory, "challenges.map"),
    certificates: {
      directory: join(directory, "certificates"),
      listFile: join(directory, "certificates.list"),
      key: hostKey,
    },
  };
}

/** Socket of the login form, on which HAProxy is the only client. */
export function loginSocketBelow(directory: string): string {
  return join(directory, "login.sock");
}

export function createHaproxy(deps: HaproxyDeps): Haproxy {
  const { directory, uid, imagesDir, log } = deps;
  const asRoot = process.getuid?.() === 0;
  const configFile = join(directory, "haproxy.cfg");
  const certificateFile = join(directory, "server.pem");
  const { hostsFile, loginsFile, challengesFile, certificates } = haproxyFilesBelow(directory, deps.hostKey);
  const sockets = join(directory, "sockets");
  const lowPorts = [...deps.listen, ...deps.redirectListen].some((each) => endpointOf(each).port < 1_024);
  let running: Running | undefined;
  let started = 0;

  async function imageRoot(): Promise<string> {
    const recipe = recipeOf(software, version);
    if (recipe !== undefined)
      await ensureImage({ imagesDir, recipe, progress: (line) => log.info("image", { progress: line }) });
    const found = findSoftware(imagesDir, software, version);
    if (found === undefined) throw new Error("this installation has no HAProxy");
    return found.image.root;
  }

  async function writeFiles(table: RouteTable, { key, certificate }: Certificate, socket: string): Promise<void> {
    await mkdir(sockets, { recursive: true, mode: 0o700 });
    const certificateListFile = certificates.listFile;
    const loginSocket = loginSocketBelow(directory);
    const files = { certificateFile, certificateListFile, hostsFile, loginsFile, challengesFile };
    const settings = { ...deps, ...files, loginSocket, socket };
    await writeFile(hostsFile, hostLines(table), { mode: 0o644 });
    await writeSecret(loginsFile, loginLines(table));
    await writeFile(challengesFile, challengeLines(table), { mode: 0o644 });
    await writeFile(configFile, haproxyConfig(table, settings), { mode: 0o644 });
    await writeSecret(certificateFile, pemOf({ key, certificate }));
    await chmod(directory, 0o755);
    await writeCertificates(certificateFiles(table, certificates));
    if (asRoot) await chown(sockets, uid, uid);
  }

  /** Writes a file that HAProxy alone reads. */
  async function writeSecret(path: string, content: string): Promise<void> {
    // Removed first: the file may belong to the program, which could have replaced it by a link.
    await rm(path, { force: true });
    await writeFile(path, content, { mode: 0o400, flag: "wx" });
    if (asRoot) await chown(path, uid, uid);
  }

  /** Replaces the certificates of domains of users. A process that runs has read them when it started. */
  async function writeCertificates(files: readonly CertificateFile[]): Promise<void> {
    await rm(certificates.directory, { recursive: true, force: true });
    await mkdir(certificates.directory, { mode: 0o755 });
    for (const { path, text } of files) {
      await writeFile(path, text, { mode: 0o400, flag: "wx" });
      if (asRoot) await chown(path, uid, uid);
    }
    await writeFile(certificates.listFile, files.map(({ path }) => `${path}\n`).join(""), { mode: 0o644 });
  }

  async function start(table: RouteTable, certificate: Certificate): Promise<void> {
    const before = running;
    started += 1;
    const socket = join(sockets, `${started}.sock`);
    await writeFiles(table, certificate, socket);
    const argv = [executable, "-db", "-f", configFile];
    const { command, args } = inImage(await imageRoot(), {
      argv,
      uid,
      binds: [directory],
      asRoot,
      lowPorts,
    });
    const env = { PATH: deps.environment["PATH"] };
    const child = spawn(command, args, { cwd: "/", env, stdio: ["ignore", "inherit", "inherit"], detached: true });
    const end = Promise.withResolvers<void>();
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => undefined);
    child.once("error", failed.reject);
    child.once("exit", (code, signal) => {
      end.resolve();
      failed.reject(new Error("HAProxy ended before it responded"));
      log.info("haproxy ended", { code, signal });
      if (running?.child !== child) return;
      running = undefined;
      deps.onEnd();
    });
    try {
      await Promise.race([untilResponds(socket), failed.promise]);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
    running = { child, socket, ended: end.promise };
    log.info("haproxy started", { backends: table.backends.length });
    if (before !== undefined) drain(before);
  }

  async function run(commands: readonly string[]): Promise<void> {
    if (running === undefined) throw new Error("HAProxy does not run");
    await runCommands(running.socket, commands, AbortSignal.timeout(commandTimeoutMs));
  }

  return {
    get isRunning() {
      return running !== undefined;
    },
    start,
    run,
    renew: (certificate) => run(replaceCertificate(certificateFile, pemOf(certificate))),
    async stop() {
      const last = running;
      running = undefined;
      if (last === undefined) return;
      drain(last);
      const force = setTimeout(() => last.child.kill("SIGKILL"), graceMs);
      await last.ended;
      clearTimeout(force);
    },
  };
}

function pemOf({ key, certificate }: Certificate): string {
  return `${certificate}\n${key}\n`;
}

/** Has it close its listeners, finish its requests and end. It has no handler for SIGTERM. */
function drain({ child }: Running): void {
  const pid = child.pid === undefined ? undefined : programPid(child.pid);
  try {
    if (pid !== undefined) process.kill(pid, "SIGUSR1");
  } catch (error) {
    // It ended by itself before the signal.
    if (!hasCode(error, "ESRCH")) throw error;
  }
}

/** Resolves once the process at the socket responds: its listeners are open then. */
async function untilResponds(socket: string): Promise<void> {
  const limit = AbortSignal.timeout(startTimeoutMs);
  for (;;) {
    const output = await sendCommand(socket, "show info", limit).catch(() => "");
    if (output.includes("Version")) return;
    await delay(pollMs, undefined, { signal: limit });
  }
}
