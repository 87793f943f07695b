import { setTimeout as sleep } from "node:timers/promises";
import { endOf } from "../../faults/engine-changes.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { ChangeFailed } from "./attempts.ts";
import { type Answer, longMs, type ServiceFixture } from "./walk-fixture.ts";
import type { ServiceStep, ServiceStepKind } from "./walk-step.ts";

type Executor<K extends ServiceStepKind> = (
  fixture: ServiceFixture,
  step: Extract<ServiceStep, { kind: K }>,
) => Promise<string>;

/** Result of a change by the API, once its operation has ended. */
async function ended({ platform }: ServiceFixture, { json }: Answer): Promise<string> {
  if (json.operation === null || json.operation === undefined) return "done";
  const { status, error } = await endOf(platform, json.operation.id);
  if (status === "completed") return "done";
  return `${status}: ${error?.code} ${error?.message}`;
}

export async function byApi(fixture: ServiceFixture, verb: string, rest: string, body?: object): Promise<void> {
  const outcome = await ended(fixture, await fixture.call(verb, fixture.path(rest), [200, 201, 202, 204], body));
  if (outcome !== "done") throw new ChangeFailed(`${verb} ${rest}: ${outcome}`);
}

/** An operation of the service itself; a rejection with a problem document is an outcome like others. */
async function operation(fixture: ServiceFixture, verb: string, rest: string, body?: object): Promise<string> {
  const response = await fixture.call(verb, fixture.path(rest), [200, 202, 400, 422], body);
  if (response.status >= 400) return `refused: ${response.text}`;
  await fixture.settled();
  return "done";
}

/** Executors of the steps that a service of any engine has. */
export const serviceExecutors: { readonly [K in ServiceStepKind]: Executor<K> } = {
  "set-parameter": async (fixture, { name, value }) => {
    const body = { parameters: { [name]: value } };
    const response = await fixture.call("PATCH", fixture.path("/configuration"), [200, 202, 400, 422], body);
    if (response.status >= 400) return `refused: ${response.text}`;
    const outcome = await ended(fixture, response);
    await fixture.settled();
    return outcome;
  },
  restart: (fixture) => operation(fixture, "POST", "/restart"),
  resize: (fixture, { plan }) => operation(fixture, "POST", "/resize", { plan_name: plan }),
  expand: (fixture, { storageGb }) => operation(fixture, "POST", "/storage/expand", { storage_size_gb: storageGb }),
  "add-node": async (fixture) => {
    const outcome = await operation(fixture, "POST", "/nodes", { role: "replica" });
    if (outcome === "done") await fixture.protect();
    return outcome;
  },
  "remove-node": async (fixture) => {
    const replica = await replicaOf(fixture);
    if (replica === undefined) return "skipped: there is no replica";
    await fixture.unprotect();
    await fixture.call("DELETE", fixture.path(`/nodes/${replica}`), [202, 204]);
    const isRemoved = async () => (await replicaOf(fixture)) === undefined;
    await waitUntil("the replica is removed", isRemoved, { withinMs: longMs });
    return "done";
  },
  switchover: async (fixture) => {
    const replica = await replicaOf(fixture);
    if (replica === undefined) return "skipped: there is no replica";
    await fixture.failures.untilReplicaCounts();
    return operation(fixture, "POST", `/nodes/${replica}/failover`);
  },
  failover: async (fixture) => {
    const { failures } = fixture;
    if ((await replicaOf(fixture)) === undefined) return "skipped: there is no replica";
    await fixture.protect();
    await failures.untilReplicaCounts();
    const { primary, replica } = await failures.roles();
    if (!fixture.mayEnd(primary)) return "skipped: the machine ended often";
    const launcherOf = () => fixture.platform.processes().machines.find(({ id }) => id === primary)?.launcher;
    const paused = launcherOf();
    // A concurrent kill of the walk was faster.
    if (paused === undefined) return "interrupted: the primary's machine is down";
    const repair = failures.pauseMachine(primary);
    try {
      const outcome = async () => {
        if ((await failures.roles()).primary === replica) return "done";
        // A concurrent kill of the walk hit the paused machine, which runs again.
        return (launcherOf() ?? paused) !== paused && "interrupted: the primary's machine was restarted";
      };
      const describe = () => fixture.services.describe(fixture.source.service.id);
      return await waitUntil("the replica is the primary", outcome, { withinMs: longMs, everyMs: 200, describe });
    } finally {
      repair();
    }
  },
  upgrade: (fixture, { version }) => operation(fixture, "POST", "/upgrade", { version }),

  kill: async (fixture, { victim }) => (fixture.kill(victim) ? "killed" : "nothing was killed"),
  "store-outage": async ({ platform }, { ms }) => {
    const { store = 0 } = platform.processes();
    if (store === 0) return "no store runs";
    killImmediately(store, "SIGSTOP");
    // Time: the length of the outage or the rest.
    await sleep(ms);
    killImmediately(store, "SIGCONT");
    return "done";
  },
  backup: async (fixture) => {
    const startedAt = Date.now();
    const { json } = await fixture.call("POST", fixture.path("/backups"), [202]);
    fixture.backups.push({ id: String(json["id"]), startedAt });
    return "requested";
  },
  "rotate-key": async (fixture) => {
    await fixture.call("POST", fixture.path("/backups/rotate-key"), [202]);
    return "done";
  },
  rest: async (fixture, { ms }) => {
    await fixture.pause();
    // Time: the length of the outage or the rest.
    await sleep(ms);
    fixture.resume();
    return "done";
  },
};

async function replicaOf({ services, source }: ServiceFixture): Promise<string | undefined> {
  const { nodes } = await services.get(source.service.id);
  return nodes.find(({ role }) => role === "replica")?.id;
}
