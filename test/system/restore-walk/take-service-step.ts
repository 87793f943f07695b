import { setTimeout as sleep } from "node:timers/promises";
import { endOf } from "../../faults/engine-changes.ts";
import { killAtOnce } from "../../support/platform/platform-processes.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { ChangeFailed } from "./attempts.ts";
import { type Answer, longMs, type ServiceGround } from "./walk-ground.ts";
import type { ServiceStep, ServiceStepKind } from "./walk-step.ts";

type Take<K extends ServiceStepKind> = (
  ground: ServiceGround,
  step: Extract<ServiceStep, { kind: K }>,
) => Promise<string>;

/** Of a change by the API, once its operation has ended. */
async function ended({ platform }: ServiceGround, { json }: Answer): Promise<string> {
  if (json.operation === null || json.operation === undefined) return "done";
  const { status, error } = await endOf(platform, json.operation.id);
  if (status === "completed") return "done";
  return `${status}: ${error?.code} ${error?.message}`;
}

export async function byApi(ground: ServiceGround, verb: string, rest: string, body?: object): Promise<void> {
  const outcome = await ended(ground, await ground.call(verb, ground.path(rest), [200, 201, 202, 204], body));
  if (outcome !== "done") throw new ChangeFailed(`${verb} ${rest}: ${outcome}`);
}

/** An operation of the service itself; a refusal in words is an outcome like others. */
async function operation(ground: ServiceGround, verb: string, rest: string, body?: object): Promise<string> {
  const answer = await ground.call(verb, ground.path(rest), [200, 202, 400, 422], body);
  if (answer.status >= 400) return `refused: ${answer.text}`;
  await ground.settled();
  return "done";
}

/** How each kind of step is taken that a service of any engine has. */
export const serviceTakes: { readonly [K in ServiceStepKind]: Take<K> } = {
  "set-parameter": async (ground, { name, value }) => {
    const body = { parameters: { [name]: value } };
    const answer = await ground.call("PATCH", ground.path("/configuration"), [200, 202, 400, 422], body);
    if (answer.status >= 400) return `refused: ${answer.text}`;
    const outcome = await ended(ground, answer);
    await ground.settled();
    return outcome;
  },
  restart: (ground) => operation(ground, "POST", "/restart"),
  resize: (ground, { plan }) => operation(ground, "POST", "/resize", { plan_name: plan }),
  expand: (ground, { storageGb }) => operation(ground, "POST", "/storage/expand", { storage_size_gb: storageGb }),
  "add-node": async (ground) => {
    const outcome = await operation(ground, "POST", "/nodes", { role: "replica" });
    if (outcome === "done") await ground.protect();
    return outcome;
  },
  "remove-node": async (ground) => {
    const replica = await replicaOf(ground);
    if (replica === undefined) return "skipped: there is no replica";
    await ground.unprotect();
    await ground.call("DELETE", ground.path(`/nodes/${replica}`), [202, 204]);
    const isGone = async () => (await replicaOf(ground)) === undefined;
    await waitUntil("the replica is gone", isGone, { withinMs: longMs });
    return "done";
  },
  switchover: async (ground) => {
    const replica = await replicaOf(ground);
    if (replica === undefined) return "skipped: there is no replica";
    await ground.failures.untilReplicaCounts();
    return operation(ground, "POST", `/nodes/${replica}/failover`);
  },
  failover: async (ground) => {
    const { failures } = ground;
    if ((await replicaOf(ground)) === undefined) return "skipped: there is no replica";
    await ground.protect();
    await failures.untilReplicaCounts();
    const { primary, replica } = await failures.roles();
    const mend = failures.pauseMachine(primary);
    try {
      const isReplaced = async () => (await failures.roles()).primary === replica;
      const describe = () => ground.services.describe(ground.source.service.id);
      await waitUntil("the replica is the primary", isReplaced, { withinMs: longMs, everyMs: 200, describe });
    } finally {
      mend();
    }
    return "done";
  },
  upgrade: (ground, { version }) => operation(ground, "POST", "/upgrade", { version }),

  kill: async (ground, { victim }) => (ground.kill(victim) ? "killed" : "nothing of it runs"),
  "store-outage": async ({ platform }, { ms }) => {
    const { store = 0 } = platform.processes();
    if (store === 0) return "no store runs";
    killAtOnce(store, "SIGSTOP");
    await sleep(ms);
    killAtOnce(store, "SIGCONT");
    return "done";
  },
  backup: async (ground) => {
    const begunAt = Date.now();
    const { json } = await ground.call("POST", ground.path("/backups"), [202]);
    ground.backups.push({ id: String(json["id"]), begunAt });
    return "requested";
  },
  "rotate-key": async (ground) => {
    await ground.call("POST", ground.path("/backups/rotate-key"), [202]);
    return "done";
  },
  rest: async (ground, { ms }) => {
    await ground.pause();
    await sleep(ms);
    ground.resume();
    return "done";
  },
};

async function replicaOf({ services, source }: ServiceGround): Promise<string | undefined> {
  const { nodes } = await services.get(source.service.id);
  return nodes.find(({ role }) => role === "replica")?.id;
}
