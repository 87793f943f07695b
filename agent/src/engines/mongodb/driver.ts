import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { applyAllowLists, untilNoClients } from "../front/front-commands.ts";
import { frontFiles } from "../front/front-config.ts";
import { createPostgresqlDriver } from "../postgresql/driver.ts";
import { documentRoles } from "../postgresql/layout.ts";
import { type FrontEndOptions, render } from "../postgresql/render.ts";
import { messageOf } from "../postgresql/session.ts";
import { startProgress } from "../postgresql/start-progress.ts";
import { asPostgresql, ofPostgresql } from "./as-postgresql.ts";
import { databases } from "./databases.ts";
import { documentsCompanion } from "./documents.ts";
import { clientListeners, frontOf } from "./front.ts";
import { checkDocuments, frontEndCompanion, untilServed } from "./front-end.ts";
import { documentsProgram, frontProgram, postgresqlVersion } from "./layout.ts";
import { createMetrics } from "./metrics.ts";
import { ensureSchema } from "./schema.ts";
import { withoutOwnRoles } from "./users.ts";

/**
 * Driver of MongoDB's API: PostgreSQL's driver, whose data are documents of the extension DocumentDB, and the programs
 * between it and clients.
 *
 * HAProxy (front.ts) terminates TLS and enforces the allow-list. The front end `opmsg` (front-end.ts) reads each
 * command, refuses what no user may do, and forwards it to one of two processes of FerretDB (documents.ts), by the role
 * of the user who signs in: the second one only reads. FerretDB verifies the password by SCRAM with the verifier of
 * PostgreSQL's role, and authorizes nothing itself. PostgreSQL admits these programs at its socket, and from the
 * network members of the service alone. Users, backups, restores and replication are those of PostgreSQL's driver.
 */
export function createMongodbDriver(deps: EngineDeps): EngineDriver {
  const postgresql = createPostgresqlDriver({ ...deps, libraries });
  const { bootstrap, command, ready, reload, observe } = ofPostgresql({
    bootstrap: postgresql.bootstrap,
    command: postgresql.command,
    ready: postgresql.ready,
    reload: postgresql.reload,
    observe: postgresql.observe,
  });
  const { collations, users, backup, replication, metrics } = postgresql;
  const copied = backup && ofPostgresql(backup);
  const hasClients = (instance: Instance) => clientListeners(instance).length > 0;
  return {
    engine: "mongodb",
    topology: "primary_replicas",
    software: () => postgresql.software(postgresqlVersion),
    fingerprint: (software, signal) => fingerprint(deps, postgresql, software, signal),
    render: (instance) => [...render(asPostgresql(instance), optionsOf(instance)), ...frontFiles(frontOf(instance))],
    listeners: clientListeners,
    bootstrap,
    command(instance) {
      const { env, ...others } = command(instance);
      return { ...others, env: { ...env, ...allocation } };
    },
    companions(instance) {
      const isEnabled = hasClients(instance);
      return [
        // In the order of a stop: FerretDB waits some seconds for the end of its connections.
        { ...frontCompanion(frontOf(instance)), isEnabled },
        frontEndCompanion(instance),
        { ...documentsCompanion(instance, "readonly"), isEnabled },
        { ...documentsCompanion(instance, "readwrite"), isEnabled },
      ];
    },
    async ready(instance, signal) {
      await ready(instance, signal);
      await ensureSchema(instance, signal);
      if (hasClients(instance)) await untilServed(instance, signal);
    },
    stop: postgresql.stop,
    async reload(instance, signal) {
      if (hasClients(instance)) await applyAllowLists(frontOf(instance), signal);
      await reload(instance, signal);
    },
    async observe(instance, signal) {
      if (!hasClients(instance)) return observe(instance, signal);
      const [observed, checks] = await Promise.all([observe(instance, signal), checkDocuments(instance, signal)]);
      return { ...observed, checks: [...observed.checks, ...checks] };
    },
    parseLog: postgresql.parseLog,
    startProgress,
    explainFailure: postgresql.explainFailure,
    ...(collations && { collations: ofPostgresql(collations) }),
    databases,
    ...(users && { users: withoutOwnRoles(ofPostgresql(users)) }),
    ...(copied && {
      backup: {
        ...copied,
        async untilNoClients(instance, signal) {
          if (hasClients(instance)) await untilNoClients(frontOf(instance), signal);
          await copied.untilNoClients(instance, signal);
        },
      },
    }),
    ...(replication && { replication: ofPostgresql(replication) }),
    ...(metrics && { metrics: createMetrics(ofPostgresql(metrics)) }),
  };
}

/**
 * Sessions return the memory of large documents to the kernel: by default glibc retains up to 34 MB in each after one
 * of 15 MB (mallopt(3), M_MMAP_THRESHOLD).
 */
const allocation = { MALLOC_MMAP_THRESHOLD_: "1048576", MALLOC_TRIM_THRESHOLD_: "4194304" } as const;

/** Libraries of DocumentDB, whose indexes have a log of their own. */
const libraries = ["pg_documentdb_core", "pg_documentdb"] as const;

/** DocumentDB needs its jobs (pg_cron), and connects to its own server over the socket to build indexes. */
function optionsOf({ spec, paths }: Instance): FrontEndOptions {
  return {
    isHidden: true,
    programRoles: Object.values(documentRoles),
    libraries: ["pg_cron", ...libraries],
    settings: [
      ["cron.database_name", defaultDatabase],
      ["cron.use_background_workers", "on"],
      ["cron.log_run", "off"],
      ["cron.log_statement", "off"],
      // Its own worker, in another database, would log the lack of each job there every second.
      ["documentdb.enableBackgroundWorkerJobs", "off"],
      ["documentdb.localhost_connection_string", `host=${paths.run} port=${spec.port}`],
    ],
  };
}

/** Without HAProxy or FerretDB clients cannot be served, so the engine counts as absent. */
async function fingerprint(
  { run }: EngineDeps,
  postgresql: EngineDriver,
  software: string,
  signal: AbortSignal,
): Promise<Fingerprint> {
  const missing = await missingFront(run, frontProgram(software), signal);
  if (missing !== undefined) return { present: false, reason: missing };
  try {
    await run([documentsProgram(software), "--version"], { signal });
  } catch (error) {
    return { present: false, reason: messageOf(error) };
  }
  return postgresql.fingerprint(software, signal);
}
