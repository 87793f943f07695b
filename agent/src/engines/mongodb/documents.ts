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
/** Share of the machine's memory at which a process collects garbage more often. */
const memoryShare = 0.1;

/**
 * A process of FerretDB. It translates commands to calls of the extension DocumentDB and authorizes nothing: every
 * client acts as the process's role, so that only the front end connects to it.
 */
export function documentsCompanion(instance: Instance, access: Access): Companion {
  const { spec, paths } = instance;
  return {
    name: `documents-${access}`,
    command: {
      argv: [
        ...replacedSocketArgv(documentsSocket(instance, access)),
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
      env: { TZ: "UTC", DO_NOT_TRACK: "1", GOMEMLIMIT: String(Math.floor(Number(spec.memoryBytes) * memoryShare)) },
      cwd: "/",
    },
    stop: { signal: "SIGTERM", graceMs: 5_000 },
  };
}

/**
 * Prefix of a command line that removes the socket of a killed process before the program starts. The machine's agent,
 * in the group of the engine's user, connects too.
 */
function replacedSocketArgv(socket: string): string[] {
  return ["/bin/sh", "-c", 'umask 007 && rm -f "$0" && exec "$@"', socket];
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
