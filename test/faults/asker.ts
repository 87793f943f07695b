import { setTimeout as sleep } from "node:timers/promises";
import type { Platform } from "../support/platform/platform.ts";
import type { Random } from "../support/random.ts";
import type { RestAnswer } from "../support/api/rest-answer.ts";
import type { OperationJson, ProblemJson, ServiceJson } from "../support/api/service-json.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { Asked, AskedService } from "./asked-services.ts";

export interface AskerDeps {
  readonly platform: Platform;
  readonly random: Random;
  readonly asked: Asked;
  /** Prefix of the names of its services, and of its idempotency keys. */
  readonly name: string;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

type Answer = RestAnswer<ServiceJson & ProblemJson>;

const mostServices = 3;

/**
 * Creates, changes, stops, starts, restarts and deletes services until the signal fires. It sends a request again until
 * it is answered, with one Idempotency-Key, and notes only what was accepted. No operation of its own is left in doubt.
 */
export async function askUntil(deps: AskerDeps): Promise<void> {
  const { random, signal } = deps;
  const own: AskedService[] = [];
  let count = 0;
  while (!signal.aborted) {
    const living = own.filter(({ wanted }) => wanted !== "gone");
    count += 1;
    if (living.length === 0 || (living.length < mostServices && random.next() < 0.35)) {
      const made = await createOne(deps, `${deps.name}-${count}`);
      if (made !== undefined) own.push(made);
    } else {
      await changeOne(deps, random.pick(living), `${deps.name}-${count}`);
    }
    // Sometimes the next wish follows while the last one is under way, mostly when it had time to come true.
    await sleep(random.next() < 0.3 ? 50 : random.between(500, 4_000), undefined, { signal }).catch(() => undefined);
  }
}

async function createOne(deps: AskerDeps, name: string): Promise<AskedService | undefined> {
  const engine = deps.random.next() < 0.6 ? "postgresql" : "valkey";
  const body = { name, database_type: engine, plan_name: "tier-1", storage_size_gb: 1, tags: { by: deps.name } };
  const answer = await ask(deps, "POST", "/managed-services", name, body);
  deps.say(`create ${name}: ${answer.status}`);
  if (answer.status !== 202) throw new Error(`creating ${name}: ${answer.status} ${answer.text}`);
  const { id, hostname, nodes, tags, allowed_cidrs: allowedCidrs } = answer.json;
  const users = new Set<string>();
  const nodeIds = nodes.map((node) => node.id);
  const service: AskedService = { id, name, engine, hostname, nodeIds, wanted: "Running", tags, allowedCidrs, users };
  deps.asked.services.push(service);
  return service;
}

async function changeOne(deps: AskerDeps, service: AskedService, key: string): Promise<void> {
  const { random } = deps;
  const path = `/managed-services/${service.id}`;
  const deed = random.pick(["tag", "tag", "networks", "stop", "start", "start", "restart", "user", "delete"]);
  const tell = (answer: Answer) => deps.say(`${deed} ${service.name}: ${answer.status} ${answer.json.code ?? ""}`);
  switch (deed) {
    case "tag": {
      const tags = { turn: key };
      tell(accepted(await ask(deps, "PATCH", path, key, { tags }), 200));
      service.tags = tags;
      return;
    }
    case "networks": {
      const allowedCidrs = ["127.0.0.0/8", `10.${random.between(0, 255)}.0.0/16`];
      tell(accepted(await ask(deps, "PATCH", path, key, { allowed_cidrs: allowedCidrs }), 200));
      service.allowedCidrs = allowedCidrs;
      return;
    }
    case "user": {
      const username = `user_${key.replaceAll("-", "_")}`;
      const body = { username, role: "readwrite" };
      const answer = await ask(deps, "POST", `${path}/database-users`, key, body);
      tell(answer);
      // The engine may be down, and what follows may stop it: no user is left in doubt.
      const isMade =
        answer.status === 202 ? await isCompleted(deps, answer.json.operation?.id ?? "") : answer.status === 201;
      if (isMade) service.users.add(username);
      return;
    }
    case "delete": {
      const isForGood = random.next() < 0.5;
      const answer = await ask(deps, "DELETE", `${path}?skip_final_backup=${isForGood}`, key);
      tell(answer);
      if (answer.status === 202 || answer.status === 404) Object.assign(service, { wanted: "gone", isForGood });
      else throw new Error(`deleting ${service.name}: ${answer.status} ${answer.text}`);
      return;
    }
    default: {
      const answer = await ask(deps, "POST", `${path}/${deed}`, key);
      tell(answer);
      if (answer.status === 202 && deed !== "restart") service.wanted = deed === "stop" ? "Stopped" : "Running";
      if (answer.status !== 202 && answer.status !== 409) throw new Error(`${deed}: ${answer.status} ${answer.text}`);
    }
  }
}

async function isCompleted({ platform }: AskerDeps, id: string): Promise<boolean> {
  return waitUntil(
    `operation ${id} has ended`,
    async () => {
      const { json } = await platform.rest.insist<OperationJson>("GET", `/operations/${id}`, { withinMs: 90_000 });
      return json.finished_at === null ? undefined : { isMade: json.status === "completed" };
    },
    { withinMs: 120_000, everyMs: 200 },
  ).then(({ isMade }) => isMade);
}

/** A verb's body is empty; what an engine must take may have to wait for its machine to be back. */
function ask({ platform }: AskerDeps, verb: string, path: string, key: string, body?: object): Promise<Answer> {
  const headers = verb === "POST" ? { "idempotency-key": key } : {};
  const options = { headers, withinMs: 90_000, ...(body === undefined ? {} : { body }) };
  return platform.rest.insist<ServiceJson & ProblemJson>(verb, path, options);
}

function accepted(answer: Answer, status: number): Answer {
  if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}: ${answer.text}`);
  return answer;
}
