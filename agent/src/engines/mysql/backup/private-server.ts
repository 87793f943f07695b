import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { effectiveParameters } from "../../effective-parameters.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory, engineDirectory, serverProgram, temporaryDirectory } from "../layout.ts";
import { codeOf } from "../session.ts";
import { ProgramFailed } from "../../../os/program.ts";
import { type ByteSession, openByteSession } from "./byte-session.ts";

/** A server on restored data that only the platform's account can connect to, without binary logs. */
export interface PrivateServer {
  /** The instance with the server's socket, for sessions. */
  readonly instance: Instance;
  open(): Promise<ByteSession>;
  /** Shuts down cleanly. */
  stop(): Promise<void>;
  /** Ends the server if it runs. Resolves with the errors that it printed; empty after a clean shutdown. */
  kill(): Promise<string>;
}

const pollIntervalMs = 50;
const startWithinMs = 600_000;
const minBuffersMib = 32;
/** Share of the machine's memory for pages. */
const buffersShare = 1 / 4;

/** Parameters that determine how indexes are built. */
const indexParameters = ["innodb_ft_min_token_size", "innodb_ft_max_token_size", "ft_min_word_len"];

export async function startPrivateServer(
  { pipe }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
  options: readonly string[] = [],
): Promise<PrivateServer> {
  const { paths, spec } = instance;
  const run = join(engineDirectory(instance), "private");
  await rm(run, { recursive: true, force: true });
  await mkdir(run, { recursive: true, mode: 0o700 });
  const privateInstance: Instance = { ...instance, paths: { ...paths, run } };
  const parameters = effectiveParameters(instance);
  const buffersMib = Math.max(minBuffersMib, Math.floor((Number(spec.memoryBytes) / 1_048_576) * buffersShare));
  const finished = new AbortController();
  const server = pipe(
    [
      serverProgram(paths.software),
      "--no-defaults",
      `--basedir=${paths.software}`,
      `--datadir=${dataDirectory(instance)}`,
      `--tmpdir=${temporaryDirectory(instance)}`,
      `--socket=${join(run, "mysql.sock")}`,
      `--pid-file=${join(run, "mysqld.pid")}`,
      "--skip-networking",
      "--mysqlx=OFF",
      "--skip-log-bin",
      "--skip-replica-start",
      "--event-scheduler=OFF",
      "--secure-file-priv=NULL",
      "--local-infile=OFF",
      "--lower-case-table-names=0",
      "--partial-revokes=ON",
      "--log-bin-trust-function-creators=ON",
      "--auto-generate-certs=OFF",
      "--caching-sha2-password-auto-generate-rsa-keys=OFF",
      "--performance-schema=OFF",
      "--log-error-verbosity=1",
      "--max-allowed-packet=1G",
      `--innodb-buffer-pool-size=${buffersMib}M`,
      ...indexParameters.map((name) => `--${name}=${parameters.get(name)}`),
      ...options,
    ],
    { env: { LC_ALL: "C", TZ: "UTC" }, signal: AbortSignal.any([signal, finished.signal]) },
  );
  const ended = drain(server.output).then(() => server.ended);
  ended.catch(() => undefined);

  async function untilStarted(): Promise<ByteSession> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(startWithinMs)]);
    for (;;) {
      try {
        return await openByteSession(privateInstance, until);
      } catch (error) {
        if (!["ENOENT", "ECONNREFUSED"].includes(codeOf(error))) throw error;
        const output = await Promise.race([ended, sleep(pollIntervalMs, undefined, { signal: until })]);
        if (output !== undefined) throw new Error(`the private server ended: ${output.slice(-500)}`);
      }
    }
  }

  async function kill(): Promise<string> {
    finished.abort();
    return ended.then(
      () => "",
      (error: unknown) => (error instanceof ProgramFailed ? error.output : ""),
    );
  }

  try {
    (await untilStarted()).close();
  } catch (error) {
    await kill();
    throw error;
  }
  return {
    instance: privateInstance,
    open: () => openByteSession(privateInstance, signal),
    async stop() {
      const session = await openByteSession(privateInstance, signal);
      await session.run("SHUTDOWN");
      await ended;
      session.close();
      await rm(run, { recursive: true, force: true });
    },
    kill,
  };
}

async function drain(output: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of output);
}
