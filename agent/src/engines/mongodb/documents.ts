import { join } from "node:path";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Companion, Instance } from "../engine-driver.ts";
import { documentRoles } from "../postgresql/layout.ts";
import { asPostgresql } from "./as-postgresql.ts";
import { type Access, documentsProgram, documentsSocket } from "./layout.ts";

const roles: Readonly<Record<Access, string>> = {
  readwrite: documentRoles.writers,
  readonly: documentRoles.readers,
};

/** Share of PostgreSQL's sessions that each process may have; the rest is for the platform and DocumentDB itself. */
const shares: Readonly<Record<Access, number>> = { readwrite: 0.5, readonly: 0.2 };
const sessionsMin = 4;
/** Shares of the machine's memory at which a process collects garbage more often, and with which it ends. */
const memoryShares = { collects: 0.1, ends: 0.5 } as const;

/**
 * A process of FerretDB. It translates commands to calls of the extension DocumentDB and authorizes nothing: every
 * client acts as the process's role, so that only the front end connects to it.
 */
export function documentsCompanion(instance: Instance, access: Access): Companion {
  const { spec, paths } = instance;
  const bytesOf = (share: number) => Math.floor(Number(spec.memoryBytes) * share);
  return {
    name: `documents-${access}`,
    command: {
      argv: [
        ...limitedArgv(documentsSocket(instance, access), bytesOf(memoryShares.ends)),
        documentsProgram(paths.software),
        `--postgresql-url=${sessionUrl(instance, access)}`,
        "--listen-addr=-",
        `--listen-unix=${documentsSocket(instance, access)}`,
        "--debug-addr=-",
        "--telemetry=disable",
        "--log-level=error",
        "--log-format=text",
        `--state-dir=${join(paths.run, `documents-${access}`)}`,
      ],
      env: { TZ: "UTC", DO_NOT_TRACK: "1", GOMEMLIMIT: String(bytesOf(memoryShares.collects)) },
      cwd: "/",
    },
    stop: { signal: "SIGTERM", graceMs: 5_000 },
  };
}

/**
 * Prefix of a command line that limits the program's memory, and removes the socket of a killed process before it
 * starts. The machine's agent, in the group of the engine's user, connects too. Out of memory, the kernel kills this
 * program before a session of PostgreSQL, whose end would restart the whole engine.
 */
function limitedArgv(socket: string, memoryBytes: number): string[] {
  const steps = [
    "umask 007",
    'rm -f "$0"',
    'ulimit -d "$1"',
    "echo 1000 > /proc/self/oom_score_adj",
    "shift",
    'exec "$@"',
  ];
  return ["/bin/sh", "-c", steps.join(" && "), socket, String(Math.floor(memoryBytes / 1024))];
}

/** URL of sessions over the engine's socket, where the role has no password. */
function sessionUrl(instance: Instance, access: Access): string {
  const { spec, paths } = instance;
  const sessions = Number(effectiveParameters(asPostgresql(instance)).get("max_connections")) * shares[access];
  const query = new URLSearchParams({
    host: paths.run,
    port: String(spec.port),
    pool_min_conns: "1",
    pool_max_conns: String(Math.max(Math.floor(sessions), sessionsMin)),
  });
  return `postgres://${roles[access]}@/${defaultDatabase}?${query.toString()}`;
}
