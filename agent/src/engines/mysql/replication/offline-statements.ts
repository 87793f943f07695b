import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { type DataPath, dataDirectory, engineDirectory, serverProgram, temporaryDirectory } from "../layout.ts";

interface OfflineStatements {
  /** Data that the server runs on. */
  readonly data: DataPath;
  /** Statements, one an element; the server ends after the last one. */
  readonly statements: readonly string[];
  /** Option file; undefined for none. */
  readonly optionFile?: string;
  /** Options that override the file's. */
  readonly options: readonly string[];
  /** Description of a failure, for users. */
  readonly failure: string;
}

const socketName = "private.sock";
const pollIntervalMs = 250;
/** Time that a server which ends may still take to greet a client. */
const exitTimeoutMs = 5_000;

/**
 * Resolves if the server greets clients: it does so after a failed statement, since it runs no further one then.
 * Rejects with the signal.
 */
async function untilServing(path: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(pollIntervalMs, undefined, { signal });
    if (await greets(path, signal)) break;
  }
  await sleep(exitTimeoutMs, undefined, { signal });
}

function greets(path: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path, signal });
    socket.once("data", () => {
      resolve(true);
      socket.destroy();
    });
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
  });
}

/**
 * Runs statements in a server that nobody can connect to, on data that no other server runs on. Rejects if one fails;
 * a server that is killed in between has done a part of them.
 */
export async function runOfflineStatements(
  { runAsEngine: run }: EngineDeps,
  { paths }: Instance,
  { data, statements, optionFile, options, failure }: OfflineStatements,
  signal: AbortSignal,
): Promise<void> {
  const file = join(engineDirectory(data), "private.sql");
  const input = [...statements, "SHUTDOWN"].map((statement) => `${statement};\n`).join("");
  await run(["rm", "-f", file], { signal });
  // Created before its content, which may be a secret.
  await run(["install", "-m", "0600", "/dev/null", file], { signal });
  await run(["tee", file], { input, signal });
  const argv = [
    serverProgram(paths.software),
    optionFile === undefined ? "--no-defaults" : `--defaults-file=${optionFile}`,
    `--basedir=${paths.software}`,
    `--datadir=${dataDirectory(data)}`,
    `--tmpdir=${temporaryDirectory(data)}`,
    `--socket=${join(paths.run, socketName)}`,
    `--pid-file=${join(paths.run, "private.pid")}`,
    "--skip-networking",
    "--mysqlx=OFF",
    "--skip-replica-start",
    "--event-scheduler=OFF",
    "--init-connect=",
    "--secure-file-priv=NULL",
    `--init-file=${file}`,
    ...options,
  ];
  const failed = new AbortController();
  const until = AbortSignal.any([signal, failed.signal]);
  const serving = untilServing(join(paths.run, socketName), until);
  serving.then(
    () => failed.abort(new Error(`${failure}: a statement failed`)),
    () => undefined,
  );
  try {
    await run(argv, { env: { LC_ALL: "C", TZ: "UTC" }, signal: until });
  } catch (error) {
    throw failed.signal.aborted ? failed.signal.reason : error;
  } finally {
    failed.abort();
    await run(["rm", "-f", file], { signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
  }
}
