import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import type { ChildSpec } from "./child.ts";
import { replaceFileSync } from "./files.ts";
import type { Layout } from "./layout.ts";
import type { Ports } from "./ports.ts";
import type { ProgramUser } from "./program-user.ts";
import type { TransportPki } from "./transport-pki.ts";

interface HistoryParts {
  readonly layout: Layout;
  readonly ports: Ports;
  readonly pki: TransportPki;
}

/** True if initdb has completed. */
export function isHistoryCreated(layout: Layout): boolean {
  return existsSync(dataOf(layout));
}

/** Creates the history database at the first call, completely or not at all. Later calls do nothing. */
export async function initHistory(
  postgresql: PlatformProgram,
  user: ProgramUser,
  { layout, password }: { layout: Layout; password: string },
): Promise<void> {
  if (isHistoryCreated(layout)) return;
  const partial = join(layout.history, "data.partial");
  rmSync(partial, { recursive: true, force: true });
  const passwordFile = join(layout.history, "password");
  replaceFileSync(passwordFile, password, 0o600, user.asRoot ? user.uid : undefined);
  const [initdb, postgres] = [postgresql.executable("initdb"), postgresql.executable("postgres")];
  const script = [
    `"${initdb}" --pgdata="$1" --username=holdfast --pwfile="$2" --auth=scram-sha-256 --data-checksums --encoding=UTF8 --locale=C`,
    `echo "create database holdfast" | "${postgres}" --single -D "$1" postgres`,
  ].join(" && ");
  const launch = postgresql.launch({
    argv: ["/bin/sh", "-euc", script, "sh", partial, passwordFile],
    ...user,
    binds: [layout.history],
  });
  try {
    await runProgram(launch.command, launch.args, { cwd: "/" });
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(partial, dataOf(layout));
}

/** PostgreSQL for events, audit and samples: TLS and SCRAM only, no Unix socket, small. */
export function historyChild(
  postgresql: PlatformProgram,
  user: ProgramUser,
  { layout, ports, pki }: HistoryParts,
): ChildSpec {
  const rules = join(layout.history, "pg_hba.conf");
  replaceFileSync(rules, "hostssl all all 127.0.0.1/32 scram-sha-256\n", 0o600, user.asRoot ? user.uid : undefined);
  const settings = [
    "listen_addresses=127.0.0.1",
    `port=${ports.history}`,
    "unix_socket_directories=",
    `hba_file=${rules}`,
    "ssl=on",
    "ssl_min_protocol_version=TLSv1.2",
    `ssl_cert_file=${pki.history.certificate}`,
    `ssl_key_file=${pki.history.key}`,
    "password_encryption=scram-sha-256",
    "shared_buffers=64MB",
    "max_connections=60",
    "max_wal_size=512MB",
    "logging_collector=off",
    "log_destination=stderr",
  ];
  const argv = [
    postgresql.executable("postgres"),
    "-D",
    dataOf(layout),
    ...settings.flatMap((setting) => ["-c", setting]),
  ];
  return {
    name: "history",
    launch: postgresql.launch({ argv, ...user, binds: [layout.history, `${layout.pki}/history`] }),
    env: {},
    ready: /ready to accept connections/,
    listens: ["history"],
    // SIGINT is PostgreSQL's fast shutdown: it terminates sessions and loses no committed data.
    stopSignal: "SIGINT",
    graceMs: 10_000,
  };
}

function dataOf(layout: Layout): string {
  return join(layout.history, "data");
}
