import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "../support/clients.ts";
import { resolveName } from "../support/dns-query.ts";
import { openEtcd } from "../support/etcd-dump.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { killAtOnce } from "../support/platform-processes.ts";
import type { OperationJson, ProblemJson, ServiceJson } from "../support/service-json.ts";
import { createServices, expectStatus, type Services } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";

interface SummaryJson {
  readonly status: string;
  readonly current_task: string | null;
  readonly progress_pct: number;
  readonly operation_id: string | null;
}

const hourMs = 3_600_000;

describe("the life of a managed service", () => {
  let platform: Platform;
  let services: Services;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
  });
  afterAll(() => platform?.remove());

  /** What the process has to do for a change is not done meanwhile, however quick it is. */
  async function whileStanding<T>(pid: number | undefined, run: () => Promise<T>): Promise<T> {
    if (pid === undefined) throw new Error("there is no such process");
    killAtOnce(pid, "SIGSTOP");
    try {
      return await run();
    } finally {
      killAtOnce(pid, "SIGCONT");
    }
  }

  const post = (id: string, verb: string) =>
    platform.rest.post<ServiceJson & ProblemJson & { operation: OperationJson }>(`/managed-services/${id}/${verb}`);

  it("goes from Pending to Running with progress that only grows, through the spec's steps", async () => {
    const created = await services.create("progress");
    expect(created).toMatchObject({ status: "Pending", operation: { type: "create" }, expires_at: null });
    const seen: SummaryJson[] = [];
    await waitUntil("it runs", async () => {
      const { json } = await platform.rest.get<SummaryJson>(`/managed-services/${created.id}/task-summary`);
      seen.push(json);
      return json.operation_id === null;
    });
    const steps = ["SetupNetwork", "SetupServer", "SetupAgent", "SetupDNS", "ProvisioningHealth"];
    const percentages = seen.map(({ progress_pct }) => progress_pct);
    expect(percentages).toEqual(percentages.toSorted((a, b) => a - b));
    const places = seen.flatMap(({ current_task }) => (current_task === null ? [] : [steps.indexOf(current_task)]));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(seen.at(-1)).toEqual({ status: "Running", current_task: null, progress_pct: 100, operation_id: null });
    expect(await services.get(created.id)).toMatchObject({
      status: "Running",
      operation: null,
      hostname: created.hostname,
      port: created.port,
    });
    await services.delete(created.id);
  });

  it("begins once when two ask for one name at once", async () => {
    const body = { name: "wanted", database_type: "valkey", plan_name: "tier-1", storage_size_gb: 1 };
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => platform.rest.post<ServiceJson & ProblemJson>("/managed-services", body)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.json.code).toBe("name_taken");
    const id = answers.find(({ status }) => status === 202)?.json.id ?? "";
    await services.settled(id, "Running");
    await services.delete(id);
    expectStatus(await platform.rest.post("/managed-services", body), 202);
  });

  it("ends while it is being created, and its name is free again", async () => {
    const { id, hostname, nodes } = await whileStanding(platform.processes().dns, endBrief);
    await services.gone(id);
    expect(await resolveName(platform.admin.dns_server, hostname)).toEqual([]);
    await waitUntil("its machine is gone", () =>
      platform.processes().machines.every((machine) => machine.id !== nodes[0]?.id),
    );
    const next = await services.create("brief");
    await platform.rest.delete(`/managed-services/${next.id}`);
    await services.gone(next.id);
  });

  /** A service whose names nobody answers yet is not Running. */
  async function endBrief(): Promise<ServiceJson> {
    const created = await services.create("brief");
    const { id, operation } = created;
    for (const verb of ["start", "stop", "restart"]) {
      const refused = expectStatus(await post(id, verb), 409).json;
      expect(refused).toMatchObject({ code: "operation_in_progress", operation: { id: operation?.id } });
    }
    expectStatus(await platform.rest.patch(`/managed-services/${id}`, { tags: { early: "yes" } }), 200);
    expectStatus(await platform.rest.get(`/managed-services/${id}/connection`), 200);
    expectStatus(await platform.rest.get(`/managed-services/${id}/database-users`), 409);
    expectStatus(await post(id, "database-users/app_user/reveal-password"), 409);
    const change = { parameters: { work_mem: "8MB" } };
    expectStatus(await platform.rest.patch(`/managed-services/${id}/configuration`, change), 409);

    const deletion = await platform.rest.delete<ServiceJson>(`/managed-services/${id}`);
    expect(expectStatus(deletion, 202).json.operation).toMatchObject({ type: "delete" });
    const again = await platform.rest.delete<ServiceJson>(`/managed-services/${id}`);
    if (again.status !== 404) expect(again.json.operation?.id).toBe(deletion.json.operation?.id);
    const cancelled = await platform.rest.get<OperationJson>(`/operations/${operation?.id}`);
    if (cancelled.status !== 404) expect(cancelled.json).toMatchObject({ status: "cancelled", type: "create" });
    return created;
  }

  describe("verbs", () => {
    let id: string;
    beforeAll(async () => {
      id = (await services.createRunning("verbs")).service.id;
    });
    afterAll(() => services.delete(id));

    it("start is refused while it is Running", async () => {
      expect(expectStatus(await post(id, "start"), 409).json.code).toBe("wrong_state");
    });

    it("stop again while it stops is the same operation, and another verb is refused", async () => {
      const machineId = (await services.get(id)).nodes[0]?.id;
      const agent = platform.processes().machines.find((machine) => machine.id === machineId)?.agent;
      await whileStanding(agent, async () => {
        const first = expectStatus(await post(id, "stop"), 202).json.operation;
        const [again, other] = await Promise.all([post(id, "stop"), post(id, "restart")]);
        expect(expectStatus(again, 202).json.operation.id).toBe(first.id);
        expect(expectStatus(other, 409).json).toMatchObject({ code: "operation_in_progress" });
      });
      const stopped = await services.settled(id, "Stopped");
      expect(stopped.nodes[0]).toMatchObject({ status: "Stopped" });
      expect(platform.processes().machines.map((machine) => machine.id)).not.toContain(stopped.nodes[0]?.id);
    });

    it("stop and restart are refused while it is Stopped, and what is stored can still change", async () => {
      expect(expectStatus(await post(id, "stop"), 409).json.code).toBe("wrong_state");
      expect(expectStatus(await post(id, "restart"), 409).json.code).toBe("wrong_state");
      const change = { tags: { a: "b" }, ttl_hours: 5, deletion_protection: true, allowed_cidrs: ["127.0.0.0/8"] };
      expectStatus(await platform.rest.patch(`/managed-services/${id}`, change), 200);
      const back = { ttl_hours: null, deletion_protection: false };
      const answer = await platform.rest.patch<ServiceJson>(`/managed-services/${id}`, back);
      expect(expectStatus(answer, 200).json).toMatchObject({ ttl_hours: null, expires_at: null });
    });

    it("stop is refused during start, and works after it", async () => {
      const started = expectStatus(await post(id, "start"), 202).json;
      expect(started.operation.type).toBe("start");
      expect(expectStatus(await post(id, "stop"), 409).json).toMatchObject({
        code: "operation_in_progress",
        operation: { id: started.operation.id },
      });
      expect(expectStatus(await post(id, "start"), 202).json.operation.id).toBe(started.operation.id);
      await services.settled(id, "Running");
      await services.verb(id, "stop");
      await services.verb(id, "start");
    });

    it("restart keeps the status Running and gives the engine a new process", async () => {
      const machineId = (await services.get(id)).nodes[0]?.id;
      const engine = () => platform.processes().machines.find((machine) => machine.id === machineId)?.engine;
      const before = engine();
      const { operation } = expectStatus(await post(id, "restart"), 202).json;
      const statuses = new Set<string>();
      await waitUntil("the restart is over", async () => {
        statuses.add((await services.get(id)).status);
        const { json } = await platform.rest.get<OperationJson>(`/operations/${operation.id}`);
        return json.status === "completed";
      });
      expect([...statuses]).toEqual(["Running"]);
      expect(engine()).not.toBe(before);
    });

    it("every operation has ended", async () => {
      const operations = await services.operations(id);
      expect(operations.map(({ type, status }) => `${type} ${status}`)).toEqual([
        "restart completed",
        "start completed",
        "stop completed",
        "start completed",
        "stop completed",
        "create completed",
      ]);
      for (const { finished_at, started_at, progress_pct } of operations) {
        expect(Date.parse(finished_at ?? "")).toBeGreaterThanOrEqual(Date.parse(started_at ?? ""));
        expect(progress_pct).toBe(100);
      }
    });
  });

  it("goes on under another name, with the same host name, and the old name is free", async () => {
    const { service, connection, password } = await services.createRunning("before");
    const renamed = await platform.rest.patch<ServiceJson>(`/managed-services/${service.id}`, { name: "after" });
    expect(expectStatus(renamed, 200).json).toMatchObject({ name: "after", hostname: service.hostname });
    await queryOnce(platform, connection, { password }, "SELECT 1");
    const taken = await platform.rest.post<ProblemJson>("/managed-services", {
      name: "after",
      database_type: "valkey",
      plan_name: "tier-1",
      storage_size_gb: 1,
    });
    expect(expectStatus(taken, 409).json.code).toBe("name_taken");
    const old = await services.create("before", { database_type: "valkey" });
    await platform.rest.delete(`/managed-services/${old.id}`);
    await services.delete(service.id);
    await services.gone(old.id);
  });

  it("is not deleted under deletion protection", async () => {
    const { id } = await services.create("guarded", { database_type: "valkey", deletion_protection: true });
    const refused = await platform.rest.delete<ProblemJson>(`/managed-services/${id}`);
    expect(expectStatus(refused, 409).json.code).toBe("deletion_protected");
    expectStatus(await platform.rest.patch(`/managed-services/${id}`, { deletion_protection: false }), 200);
    await services.delete(id);
  });

  describe("time to live", () => {
    /** As if the hours had passed: the moment of expiry is moved in the store, where only time should move it. */
    async function endIn(id: string, leftMs: number): Promise<void> {
      const etcd = openEtcd(platform.directory);
      try {
        const key = `/holdfast/v1/managed-service/${id}`;
        await waitUntil("the moment is moved", async () => {
          const found = (await etcd.raw.get(key).exec()).kvs[0];
          if (found === undefined) throw new Error(`no key ${key}`);
          const object = JSON.parse(found.value.toString());
          const value = JSON.stringify({ ...object, spec: { ...object.spec, expiresAt: Date.now() + leftMs } });
          const { succeeded } = await etcd.raw
            .if(key, "Mod", "==", found.mod_revision)
            .then(etcd.raw.put(key).value(value))
            .commit();
          return succeeded;
        });
      } finally {
        etcd.raw.close();
      }
    }

    const expireNow = (id: string) => endIn(id, -1_000);

    it("counts from the request, warns a day and an hour before, and deletes the service when it is over", async () => {
      const before = Date.now();
      const service = await services.create("expiring", { database_type: "valkey", ttl_hours: 48 });
      const left = Date.parse(service.expires_at ?? "") - before;
      expect(left).toBeGreaterThanOrEqual(48 * hourMs);
      expect(left).toBeLessThan(48 * hourMs + 60_000);
      await services.settled(service.id, "Running");
      const warned = async () => {
        const path = `/managed-services/${service.id}/events`;
        const { events } = (await platform.rest.get<{ events: { event_type: string; data: object }[] }>(path)).json;
        return events.filter(({ event_type: type }) => type === "service.expiring").map(({ data }) => data);
      };
      expect(await warned()).toEqual([]);
      for (const [index, hours] of [24, 1].entries()) {
        await endIn(service.id, hours * hourMs - 1_000);
        const [newest] = await waitUntil("it is announced", async () => {
          const all = await warned();
          return all.length === index + 1 && all.slice(-1);
        });
        expect(newest).toMatchObject({ hours_left: hours, service_id: service.id });
      }
      await expireNow(service.id);
      await services.gone(service.id);
    });

    it("is held by deletion protection", async () => {
      const { id } = await services.create("held", {
        database_type: "valkey",
        ttl_hours: 1,
        deletion_protection: true,
      });
      await services.settled(id, "Running");
      await expireNow(id);
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      expect(await services.get(id)).toMatchObject({ status: "Running", operation: null });
      expectStatus(await platform.rest.patch(`/managed-services/${id}`, { deletion_protection: false }), 200);
      await services.gone(id);
    });
  });

  it("is in Error with a reason when its engine cannot run, and can still be deleted", async () => {
    const { service } = await services.createRunning("broken");
    const machine = () => platform.processes().machines.find(({ id }) => id === service.nodes[0]?.id);
    const control = await findInMachine(machine()?.engine ?? 0, "global/pg_control");
    writeFileSync(control, "not a control file");
    process.kill(machine()?.engine ?? 0, "SIGKILL");
    const failed = await waitUntil(
      "the service is in Error",
      async () => {
        const now = await services.get(service.id);
        return now.status === "Error" ? now : undefined;
      },
      { withinMs: 150_000, everyMs: 500, describe: () => services.describe(service.id) },
    );
    expect(failed.error?.message).not.toBe("");
    expect(failed.operation).toBeNull();
    expect(expectStatus(await post(service.id, "restart"), 409).json.code).toBe("wrong_state");
    await services.delete(service.id);
  });
});

/** Path by which this process reaches a file of the engine's data directory, inside the machine's mounts. */
async function findInMachine(engine: number, file: string): Promise<string> {
  const { readlink } = await import("node:fs/promises");
  const inside = await readlink(`/proc/${engine}/cwd`);
  return `/proc/${engine}/root${inside}/${file}`;
}
