import { rm } from "node:fs/promises";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { startTemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { Client } from "pg";

/** A newly created server that responded to its first query. */
export interface Made {
  /** From the first command to the response. */
  readonly wallMs: number;
  remove(): Promise<void>;
}

/**
 * `initdb`, start and a first query without any platform: the programs of the node image, with checksums and fsync like
 * Holdfast's, one namespace for both commands, without TLS, users and names.
 */
export async function makeBarePostgresql(): Promise<Made> {
  const postgresql = testProgram("postgresql", "17");
  const directory = programDirectory("bench-bare");
  const [port = 0] = await freePorts(1);
  const data = `${directory}/data`;
  const script = [
    `'${postgresql.executable("initdb")}' -D ${data} -U postgres -A trust -k -E UTF8 --locale=C >/dev/null`,
    `exec '${postgresql.executable("postgres")}' -D ${data} -c port=${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory}`,
  ].join(" && ");
  const launch = postgresql.launch({ argv: ["/bin/sh", "-c", script], uid: testUid, binds: [directory], asRoot });
  const startedAt = performance.now();
  const running = await startTemporaryProcess(launch, /ready to accept connections/);
  await firstAnswer({ host: "127.0.0.1", port, user: "postgres", database: "postgres" });
  const wallMs = performance.now() - startedAt;
  return {
    wallMs,
    async remove() {
      await running.end("SIGINT");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function firstAnswer(config: ConstructorParameters<typeof Client>[0]): Promise<void> {
  const client = new Client(config);
  await client.connect();
  const { rows } = await client.query("SELECT 1 AS one");
  await client.end();
  if (rows[0]?.one !== 1) throw new Error("the bare server did not answer");
}
