import { listenersOf } from "../addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { EngineDriver, Instance } from "../engine-driver.ts";
import { applyAllowLists, untilNoClients } from "../front/front-commands.ts";
import { frontFiles } from "../front/front-config.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { createPostgresqlDriver } from "../postgresql/driver.ts";
import { render } from "../postgresql/render.ts";
import { startProgress } from "../postgresql/start-progress.ts";
import { checkFrontEnd, frontEndCompanion, untilServing } from "./front-end.ts";
import { frontEndListeners, frontOf } from "./front.ts";
import { frontProgram } from "./layout.ts";
import { databases } from "./databases.ts";
import { createMetrics } from "./metrics.ts";
import { createFrontEndSchema } from "./schema.ts";
import { unsupportedFeatures } from "./usage.ts";

/**
 * Driver of PostgreSQL with the T-SQL front end: PostgreSQL's driver, two companions and the schemas of the front end.
 *
 * T-SQL clients connect to HAProxy (front.ts), which enforces the allow-list and passes their connections on to the
 * process `tds` (front-end.ts). It signs each client in to PostgreSQL over the socket by the client's own SCRAM proof,
 * so users, roles and passwords are PostgreSQL's. All data are in PostgreSQL, so backups, restores and replication are
 * its driver's. Clients of PostgreSQL's protocol connect to the engine itself.
 */
export function createTsqlDriver(deps: EngineDeps): EngineDriver {
  const postgresql = createPostgresqlDriver(deps);
  const schema = createFrontEndSchema();
  const hasClients = (instance: Instance) => frontEndListeners(instance).length > 0;
  const { collations, users, backup, replication, upgrade, metrics } = postgresql;
  return {
    engine: "tsql",
    topology: "primary_replicas",
    software: postgresql.software,
    async fingerprint(software, signal) {
      const missing = await missingFront(deps.run, frontProgram(software), signal);
      return missing === undefined ? postgresql.fingerprint(software, signal) : { present: false, reason: missing };
    },
    render: (instance) => [...render(instance, { viaSocket: true }), ...frontFiles(frontOf(instance))],
    listeners: (instance) => [...listenersOf(instance), ...frontEndListeners(instance)],
    bootstrap: postgresql.bootstrap,
    command: postgresql.command,
    companions: (instance) => [
      frontEndCompanion(instance),
      { ...frontCompanion(frontOf(instance)), isEnabled: hasClients(instance) },
    ],
    async ready(instance, signal) {
      await postgresql.ready(instance, signal);
      // A database that users dropped, or a schema of theirs, is a health check instead of a failed start.
      await schema.check(instance, signal);
      if (hasClients(instance)) await untilServing(instance, signal);
    },
    stop: postgresql.stop,
    async reload(instance, signal) {
      if (hasClients(instance)) await applyAllowLists(frontOf(instance), signal);
      await postgresql.reload(instance, signal);
    },
    async observe(instance, signal) {
      if (!hasClients(instance)) return postgresql.observe(instance, signal);
      const [observed, frontEnd] = await Promise.all([
        postgresql.observe(instance, signal),
        checkFrontEnd(instance, signal),
      ]);
      const installed = observed.responded ? await schema.check(instance, signal) : undefined;
      const checks = [...observed.checks, frontEnd, ...(installed === undefined ? [] : [installed])];
      return { ...observed, checks };
    },
    parseLog: postgresql.parseLog,
    startProgress,
    explainFailure: postgresql.explainFailure,
    ...(collations && { collations }),
    ...(users && { users }),
    databases,
    ...(backup && {
      backup: {
        ...backup,
        async untilNoClients(instance, signal) {
          if (hasClients(instance)) await untilNoClients(frontOf(instance), signal);
          await backup.untilNoClients(instance, signal);
        },
      },
    }),
    ...(replication && { replication }),
    ...(upgrade && { upgrade }),
    ...(metrics && { metrics: createMetrics(metrics) }),
    unsupportedFeatures,
  };
}
