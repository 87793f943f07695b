import { setTimeout as sleep } from "node:timers/promises";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { Random } from "@holdfast/testing/random.ts";
import type { RestResponse } from "@holdfast/testing/api/rest-response.ts";
import type { OperationJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { RequestLog, RequestedService } from "./requested-services.ts";

export interface RandomRequestDeps {
  readonly platform: Platform;
  readonly random: Random;
  readonly requests: RequestLog;
  /** Prefix of the names of its services, and of its idempotency keys. */
  readonly name: string;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

type Answer = RestResponse<ServiceJson & ProblemJson>;

const mostServices = 3;

/**
 * Creates, changes, stops, starts, restarts and deletes services until the signal is aborted. Each request is repeated
 * with one Idempotency-Key until it has a response, and only accepted ones are recorded. Resolves when the outcome of
 * each of its operations is certain.
 */
export async function sendRequestsUntil(deps: RandomRequestDeps): Promise<void> {
  const { random, signal } = deps;
  const requested: RequestedService[] = [];
  let count = 0;
  while (!signal.aborted) {
    const living = requested.filter(({ desired }) => desired !== "deleted");
    count += 1;
    if (living.length === 0 || (living.length < mostServices && random.next() < 0.35)) {
      const created = await createOne(deps, `${deps.name}-${count}`);
      if (created !== undefined) requested.push(created);
    } else {
      await changeOne(deps, random.pick(living), `${deps.name}-${count}`);
    }
    // Time: the rate of the requests: some follow while the last one is in progress, most after it completed.
    await sleep(random.next() < 0.3 ? 50 : random.between(500, 4_000), undefined, { signal }).catch(() => undefined);
  }
}

async function createOne(deps: RandomRequestDeps, name: string): Promise<RequestedService | undefined> {
  const engine = deps.random.next() < 0.6 ? "postgresql" : "valkey";
  const body = { name, database_type: engine, plan_name: "tier-1", storage_size_gb: 1, tags: { by: deps.name } };
  const response = await send(deps, "POST", "/managed-services", name, body);
  deps.log(`create ${name}: ${response.status}`);
  if (response.status !== 202) throw new Error(`creating ${name}: ${response.status} ${response.text}`);
  const { id, hostname, nodes, tags, allowed_cidrs: allowedCidrs } = response.json;
  const users = new Set<string>();
  const nodeIds = nodes.map((node) => node.id);
  const service: RequestedService = {
    id,
    name,
    engine,
    hostname,
    nodeIds,
    desired: "Running",
    tags,
    allowedCidrs,
    users,
  };
  deps.requests.services.push(service);
  return service;
}

async function changeOne(deps: RandomRequestDeps, service: RequestedService, key: string): Promise<void> {
  const { random } = deps;
  const path = `/managed-services/${service.id}`;
  const action = random.pick(["tag", "tag", "networks", "stop", "start", "start", "restart", "user", "delete"]);
  const logResponse = (response: Answer) =>
    deps.log(`${action} ${service.name}: ${response.status} ${response.json.code ?? ""}`);
  switch (action) {
    case "tag": {
      const tags = { turn: key };
      logResponse(accepted(await send(deps, "PATCH", path, key, { tags }), 200));
      service.tags = tags;
      return;
    }
    case "networks": {
      const allowedCidrs = ["127.0.0.0/8", `10.${random.between(0, 255)}.0.0/16`];
      logResponse(accepted(await send(deps, "PATCH", path, key, { allowed_cidrs: allowedCidrs }), 200));
      service.allowedCidrs = allowedCidrs;
      return;
    }
    case "user": {
      const username = `user_${key.replaceAll("-", "_")}`;
      const body = { username, role: "readwrite" };
      const result = await send(deps, "POST", `${path}/database-users`, key, body);
      logResponse(result);
      // The engine may be down, and the next request may stop it: no user is left in doubt.
      const isCreated =
        result.status === 202 ? await isCompleted(deps, result.json.operation?.id ?? "") : result.status === 201;
      if (isCreated) service.users.add(username);
      return;
    }
    case "delete": {
      const isPermanent = random.next() < 0.5;
      const answer = await send(deps, "DELETE", `${path}?skip_final_backup=${isPermanent}`, key);
      logResponse(answer);
      if (answer.status === 202 || answer.status === 404) Object.assign(service, { desired: "deleted", isPermanent });
      else throw new Error(`deleting ${service.name}: ${answer.status} ${answer.text}`);
      return;
    }
    default: {
      const answer = await send(deps, "POST", `${path}/${action}`, key);
      logResponse(answer);
      if (answer.status === 202 && action !== "restart") service.desired = action === "stop" ? "Stopped" : "Running";
      if (answer.status !== 202 && answer.status !== 409) throw new Error(`${action}: ${answer.status} ${answer.text}`);
    }
  }
}

async function isCompleted({ platform }: RandomRequestDeps, id: string): Promise<boolean> {
  return waitUntil(
    `operation ${id} has ended`,
    async () => {
      const { json } = await platform.rest.insist<OperationJson>("GET", `/operations/${id}`, { withinMs: 90_000 });
      return json.finished_at === null ? undefined : { isMade: json.status === "completed" };
    },
    { withinMs: 120_000, everyMs: 200 },
  ).then(({ isMade: isCreated }) => isCreated);
}

/** A verb's body is empty; a change inside an engine may wait until its machine is back. */
function send(
  { platform }: RandomRequestDeps,
  verb: string,
  path: string,
  key: string,
  body?: object,
): Promise<Answer> {
  const headers = verb === "POST" ? { "idempotency-key": key } : {};
  const options = { headers, withinMs: 90_000, ...(body === undefined ? {} : { body }) };
  return platform.rest.insist<ServiceJson & ProblemJson>(verb, path, options);
}

function accepted(response: Answer, status: number): Answer {
  if (response.status !== status) throw new Error(`${response.status} instead of ${status}: ${response.text}`);
  return response;
}
