import { isIP } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { createLog, type Log } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { userKind } from "#access/credential/credential.ts";
import { createRefusalAudit } from "#access/audit/audit-log.ts";
import { authenticatorPart } from "#access/authenticator.ts";
import { scopeCatalogPart } from "#access/scopes.ts";
import { ownerKinds } from "#fleet/owner/owner-kind.ts";
import { createAssembly } from "#kernel/assembly.ts";
import { type Installation, installationPart } from "#kernel/installation.ts";
import { migrationGroups } from "#kernel/history/migrate.ts";
import { openKernel } from "#kernel/kernel.ts";
import type { ProcessMetrics } from "#kernel/metrics/process-metrics.ts";
import { timedReconciled, timedService } from "#kernel/metrics/timed-service.ts";
import { openSystems, mergeDeclared, type SystemDeclaration } from "#kernel/system-declaration.ts";
import { createRunner } from "#kernel/runtime/runner.ts";
import { startApi } from "./api.ts";
import { type ControllerConfig, readControllerConfig } from "./config.ts";
import { eventTypesOf, scopeCatalogOf } from "./systems.ts";

/** A running controller. */
export interface Controller {
  readonly controllerId: string;
  readonly log: Log;
  /** Metrics of this process. */
  readonly metrics: ProcessMetrics;
  /** Stops serving and revokes the lease, so that other controllers take over immediately. Machines keep running. */
  stop(): Promise<void>;
}

/** Starts a controller with these systems, configured by its environment. Resolves when it serves. */
export async function startController(
  declared: readonly SystemDeclaration[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Controller> {
  const config = readControllerConfig(environment, declared);
  const log = createLog("controller", config.logLevel);
  const eventTypes = eventTypesOf(declared);
  const assembly = createAssembly(declared);
  assembly.add("controller", [
    scopeCatalogPart.of(scopeCatalogOf(declared)),
    installationPart.of({
      environment,
      baseUrl: config.baseUrl,
      ...ownEndpoints(config),
      sources: createClientAddresses(config).sources,
      eventTypes,
    }),
  ]);
  const stopping = new AbortController();

  const kernel = await openKernel({
    settings: config,
    migrations: assembly.useFor("controller")(migrationGroups),
    async prepare(parts, signal) {
      for (const { name, prepare } of declared) await prepare(parts, assembly.useFor(name), environment, signal);
    },
    clock: systemClock,
    newId: uuidv7,
    random: Math.random,
    log,
    signal: stopping.signal,
  });
  const { controllerId, controllerRegistry, outbox, shards } = kernel;
  const systems = await openSystems(kernel, declared, { assembly, environment });
  kernel.setEntryPlanners(systems.flatMap(({ planners = [] }) => planners));
  await kernel.collections.ready();

  const { metrics } = kernel;
  const reconciles = metrics.times("reconcile_seconds", "Reconciles of keys", "reconciler");
  const calls = metrics.times("rpc_seconds", "Calls of API methods, without the gateway", "method");
  const runner = createRunner({
    ...kernel,
    loops: systems.flatMap(({ work = [] }) => work).map((work) => timedReconciled(work, reconciles)),
    ownership: shards,
  });
  kernel.setRunner(runner);
  runner.start();
  for (const gauge of systems.flatMap((system) => system.metrics ?? [])) metrics.add(gauge);
  for (const figure of systems.flatMap((system) => system.serviceGauges ?? [])) kernel.serviceGauges.add(figure);
  metrics.add({
    name: "reconcile_queue_keys",
    help: "Keys that are due or being reconciled",
    read: () => ({ label: "reconciler", values: runner.sizes() }),
  });
  metrics.add({
    name: "reconcile_failing_keys",
    help: "Keys whose last reconcile failed, or still runs after its abort",
    read: () => ({ label: "reconciler", values: runner.failing() }),
  });
  const kinds = mergeDeclared(declared, ({ audited }) => audited);
  const users = kernel.collections.open(userKind);
  const refusals = createRefusalAudit({
    record: outbox.auditSoon,
    hasEntry: kernel.auditedActs.hasEntry,
    kinds,
    organizationOfUser: (username) => users.get(username)?.object.metadata.organizationId,
  });
  const api = await startApi({
    ...kernel,
    services: systems.flatMap(({ rpcs = [] }) => rpcs).map((served) => timedService(refusals.wrap(served), calls)),
    ownerPaths: assembly
      .useFor("controller")(ownerKinds)
      .flatMap(({ kind, monitoring }) =>
        monitoring?.pathSegment === undefined ? [] : [{ kind, segment: monitoring.pathSegment }],
      ),
    schemaRules: systems.flatMap(({ schemaRules = [] }) => schemaRules),
    pages: systems.flatMap(({ pages = [] }) => pages),
    authenticator: assembly.useFor("controller")(authenticatorPart),
    admitGrowth() {
      kernel.space.admitGrowth();
      kernel.historySpace.admitGrowth();
    },
    refused: refusals.refused,
    storedResponses: kernel.storedResponses,
    reached: kernel.collections.untilRevision,
    requireCurrent: kernel.view.requireCurrent,
    ready() {
      const catchingUp = kernel.view.requireCurrent();
      // The calls that wait for it, or the next ones, get its error.
      catchingUp?.catch(() => undefined);
      return catchingUp === undefined;
    },
    eventTypes,
    config,
  }).catch(giveUp);
  kernel.listenerReports.refresh();
  for (const system of systems) system.start?.();
  log.info("serving", { controller: controllerId, api: config.apiListen, agents: config.agentListen });

  /** If the API cannot start, revokes the lease, so that other controllers take over immediately. */
  async function giveUp(error: unknown): Promise<never> {
    await Promise.race([controllerRegistry.leave(), delay(2_500)]).catch(() => undefined);
    throw error;
  }

  return {
    controllerId,
    log,
    metrics,
    async stop() {
      stopping.abort(new Error("the controller stops"));
      await runner.stop();
      await outbox.stop();
      for (const system of systems.toReversed()) await system.close?.();
      shards.close();
      await controllerRegistry.leave();
      await api.close(500);
      await kernel.close();
    },
  };
}

/** Listeners and addresses of the installation, according to the settings. */
function ownEndpoints(config: ControllerConfig): Pick<Installation, "listeners" | "ownAddresses"> {
  const { issuerAddresses = [], issuerPort = 0, inferenceAddresses = [] } = config;
  const isAddress = (text: string) => isIP(text) !== 0;
  return {
    listeners: [
      ...config.apiListen,
      config.historyUrl,
      ...config.etcd,
      config.objectsEndpoint,
      ...issuerAddresses.map((address) => endpointText(address, issuerPort)),
      ...config.ownAddresses.filter((text) => !isAddress(text)),
    ].filter((text) => text !== ""),
    ownAddresses: [...issuerAddresses, ...inferenceAddresses, ...config.ownAddresses].filter(isAddress),
  };
}
