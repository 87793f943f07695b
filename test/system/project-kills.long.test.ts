import { randomUUID } from "node:crypto";
import { compositionKind } from "@holdfast/controller/composition/composition.ts";
import { deploymentKind, isEnded } from "@holdfast/controller/composition/deployment.ts";
import { machineKind } from "@holdfast/controller/fleet/machine/machine.ts";
import type { Kind } from "@holdfast/controller/kernel/store/kind.ts";
import { prefixOf } from "@holdfast/controller/kernel/store/resource.ts";
import { isFinished, operationKind } from "@holdfast/controller/operation/operation.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Project, Stack, StackMigration } from "@holdfast/sdk/index.ts";
import { type BundleFixture, startBundleFixture, valkeySpec } from "@holdfast/testing/composition/bundle-fixture.ts";
import { createCrashingControllers } from "@holdfast/testing/composition/crashing-controllers.ts";
import { killAfterWrites, watchWrites } from "@holdfast/testing/composition/kill-after-write.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { type SecondController, startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

// Each write of a composition, and each write that changes a resource for it, is the last action of its controller: no
// process receives etcd's response. Over the whole life of projects and of a stack everything ends as without a death,
// and the services, machines and operations that exist are those of records.

const spec = { plan: "tier-1", storage_gb: 1 };
const valkey = (name: string) => ({ logical_name: name, kind: "valkey", spec });
const project = (name: string, resources: readonly string[] = ["a", "b"]) => ({
  name,
  resources: resources.map(valkey),
  dependencies: { b: ["a"], ...(resources.includes("d") && { d: ["new"] }) },
});
const oneCache = (plan: string) => ({
  title: "A cache",
  description: "A Valkey.",
  resources: [{ logical_name: "cache", kind: "database", spec: valkeySpec(plan) }],
});

/**
 * A project's life has some hundred writes of all its parts, and each crash takes five seconds: so every fifth write
 * crashes the controller, at most twelve times. With HOLDFAST_TEST_PROJECTS=all every write does.
 */
const sampled = process.env["HOLDFAST_TEST_PROJECTS"] === "all" ? { nth: 1 } : { nth: 5, max: 12 };
const allKinds = ["composition", "deployment", "managed-service", "operation", "machine", "task", "database-user"];
const longMs = 900_000;

/** Members of one list that the other lacks, or has less often. */
function unmatched(some: readonly string[], others: readonly string[]): readonly string[] {
  const count = (list: readonly string[], id: string) => list.filter((each) => each === id).length;
  return [...new Set([...some, ...others])].filter((id) => count(some, id) !== count(others, id));
}

describe("controllers that crash", () => {
  let fixture: BundleFixture;
  const crashing = createCrashingControllers();

  beforeAll(async () => {
    const prepare: Parameters<typeof startBundleFixture>[0] = (write) =>
      write("stacks", "one-cache", "1.0.0", oneCache("tier-1"));
    fixture = await startBundleFixture(prepare, crashing.environment);
  });
  afterAll(async () => {
    await fixture?.remove();
    crashing.remove();
  });

  const controllers = () => fixture.platform.processes().controllers;

  /**
   * Crashes the controller after every write of a composition during `run`; returns the written states, in order.
   */
  async function crashAtEach(run: () => Promise<unknown>): Promise<readonly string[]> {
    const writes = await watchWrites(fixture.platform.directory);
    try {
      const { crashes } = await crashing.during({ kinds: [compositionKind.name], nth: 1 }, run);
      expect(crashes).toHaveLength(writes.count);
      await expectNothingLeft();
      return crashes.flatMap(({ writes }) =>
        writes.map(({ value }) => (value === null ? "deleted" : compositionKind.parse(value).status.state)),
      );
    } finally {
      await writes.stop();
    }
  }

  /** Response of the first controller that responds; throws unless it has the status. */
  const responseTo = async <T>(verb: string, path: string, status: number, body?: unknown): Promise<T> => {
    const key = { "idempotency-key": randomUUID() };
    const options = { withinMs: 90_000, headers: key, ...(body !== undefined && { body }) };
    return expectStatus(await fixture.platform.rest.insist<T>(verb, path, options), status).json;
  };
  const deploy = async (descriptor: object) =>
    (await responseTo<{ deployment_id: string }>("POST", "/projects/deploy", 202, { descriptor })).deployment_id;
  const projectNow = (name: string) => fixture.eventually<Project>(`/projects/${name}`);
  const stackNow = (id: string) => fixture.eventually<Stack>(`/stacks/${id}`);

  /** The project once its resources have no detail, which is momentary, such as a silent agent. */
  const healthy = (name: string) =>
    waitUntil("the resources have no detail", async () => {
      const now = await projectNow(name);
      return now.resources.every(({ status_detail: detail }) => detail === null) ? now : undefined;
    });

  /** Expects the project's first resources to equal `before`, with their states. */
  async function expectUnchanged(name: string, before: Project): Promise<void> {
    const first = async () => (await projectNow(name)).resources.slice(0, before.resources.length);
    await expect.poll(first, { timeout: 60_000, interval: 500 }).toEqual(before.resources);
  }

  async function deleted(name: string): Promise<void> {
    await responseTo("DELETE", `/projects/${name}`, 202);
    const isDeleted = async () => (await projectNow(name)).status === "Deleted";
    await waitUntil(`${name} is deleted`, isDeleted, { withinMs: 300_000 });
  }

  /** True if the abort was accepted: it is not once the deployment has ended. */
  async function aborts(deployment: string): Promise<boolean> {
    const headers = { "idempotency-key": randomUUID() };
    const { status } = await fixture.platform.rest.insist("POST", `${deployment}/abort`, { headers, withinMs: 90_000 });
    expect([202, 409]).toContain(status);
    return status === 202;
  }

  /** Services that belong to no composition. */
  const expected = new Set<string>();

  /**
   * Takes the name of a resource that waits for another one, so that its deployment fails: names that are in use before
   * are refused.
   */
  async function take(name: string): Promise<void> {
    const request = { name, database_type: "valkey", plan_name: "tier-1", storage_size_gb: 1 };
    expected.add((await responseTo<{ id: string }>("POST", "/managed-services", 202, request)).id);
  }

  /** Expects only services of records, only machines of services, and no deployment or operation in progress. */
  async function expectNothingLeft(): Promise<void> {
    await expect
      .poll(leftovers, { timeout: 60_000, interval: 500 })
      .toEqual({ services: [], machines: [], unended: [] });
  }

  async function leftovers() {
    const { projects } = await fixture.eventually<{ projects: Project[] }>("/projects?limit=200");
    const { stacks } = await fixture.eventually<{ stacks: Stack[] }>("/stacks?limit=200");
    const { services: all } = await fixture.eventually<{ services: { id: string }[] }>("/managed-services?limit=200");
    const recorded = [
      ...projects.flatMap(({ resources }) => resources.flatMap(({ resource_id: id }) => id ?? [])),
      ...stacks.flatMap(({ resources }) => resources.flatMap(({ service_id: id }) => id ?? [])),
      ...expected,
    ];
    const inEtcd = await dumpEtcd(fixture.platform.directory);
    const objects = <R>(kind: Kind<R>) =>
      [...inEtcd].filter(([key]) => key.startsWith(prefixOf(kind))).map(([, value]) => kind.parse(value));
    const machineIds = all.map(({ id }) => id);
    const owners = objects(machineKind).map(({ spec: { owner } }) => owner?.id ?? "nobody");
    return {
      services: unmatched(machineIds, recorded),
      machines: unmatched(owners, machineIds),
      unended: [
        ...objects(deploymentKind).filter((record) => !isEnded(record)),
        ...objects(operationKind).filter((operation) => !isFinished(operation)),
      ],
    };
  }

  it(
    "at each write of a deployment and of a later one complete both",
    async () => {
      const first = await crashAtEach(async () => {
        const record = await fixture.ended("shop", await deploy(project("shop")));
        expect(record).toMatchObject({ status: "Completed", project_status: "Running" });
      });
      // Requested, begun, two of them created, and complete, with all of it running and connected.
      expect(first).toEqual([
        "Pending",
        ...Array.from({ length: first.length - 3 }, () => "Provisioning"),
        "Wiring",
        "Running",
      ]);
      expect(first.length).toBeGreaterThanOrEqual(8);
      const before = await healthy("shop");
      const later = await crashAtEach(async () => {
        const record = await fixture.ended("shop", await deploy(project("shop", ["a", "b", "c"])));
        expect(record).toMatchObject({ status: "Completed", project_status: "Running" });
      });
      expect([later[0], ...later.slice(-2)]).toEqual(["Pending", "Wiring", "Running"]);
      await expectUnchanged("shop", before);
    },
    longMs,
  );

  it(
    "at each write of a failing later deployment affect no running resource",
    async () => {
      const before = await healthy("shop");
      const states = await crashAtEach(async () => {
        const id = await deploy(project("shop", ["a", "b", "c", "new", "d"]));
        await take("shop-d");
        const record = await fixture.ended("shop", id);
        expect(record).toMatchObject({ status: "Failed", project_status: "Failed" });
      });
      expect([states[0], states.at(-1)]).toEqual(["Pending", "Failed"]);
      await expectUnchanged("shop", before);
      // A resource that ran before the failure continues to run.
      const { status, resources } = await projectNow("shop");
      const added = resources.slice(before.resources.length);
      expect([status, added]).toMatchObject(["Failed", [{ logical_name: "new", status: "Running" }]]);
    },
    longMs,
  );

  it(
    "at each write of a failing first deployment leave nothing of it",
    async () => {
      const states = await crashAtEach(async () => {
        const id = await deploy(project("brief"));
        await take("brief-b");
        const record = await fixture.ended("brief", id);
        expect(record).toMatchObject({ status: "Failed", project_status: "Failed" });
      });
      expect([...new Set(states)]).toEqual(["Pending", "Provisioning", "RollingBack", "Failed"]);
      expect((await projectNow("brief")).resources).toEqual([]);
    },
    longMs,
  );

  it(
    "at each write of an abort leave nothing of the deployment",
    async () => {
      const id = await deploy(project("stopped"));
      const isCreated = async () => (await projectNow("stopped")).resources[0]?.resource_id !== null;
      await waitUntil("a resource is created", isCreated);
      const states = await crashAtEach(async () => {
        await responseTo("POST", `/projects/stopped/deployments/${id}/abort`, 202);
        const record = await fixture.ended("stopped", id);
        expect(record).toMatchObject({ status: "Aborted", project_status: "Failed" });
      });
      expect(states.slice(-2)).toEqual(["RollingBack", "Failed"]);
      expect((await projectNow("stopped")).resources).toEqual([]);
    },
    longMs,
  );

  it(
    "at each write of a deletion remove all of it",
    async () => {
      const states = await crashAtEach(() => deleted("shop"));
      expect([...new Set(states)]).toEqual(["Deleting", "Deleted"]);
      expect((await projectNow("shop")).resources).toEqual([]);
    },
    longMs,
  );

  it(
    "at each write of a launch, an upgrade and a deletion complete each",
    async () => {
      let id = "";
      fixture.writeTemplate("stacks", "one-cache", "2.0.0", oneCache("tier-2"));
      const launched = await crashAtEach(async () => {
        // The responding controller has not read the newer template; those after it have.
        const body = { name: "cached", template_name: "one-cache", accepted_monthly_cost: 15.2 };
        id = (await responseTo<Stack>("POST", "/stacks", 201, body)).id;
        const isRunning = async () => (await stackNow(id)).status === "Running";
        await waitUntil("the stack runs", isRunning, { withinMs: 300_000 });
      });
      expect([...new Set(launched)]).toEqual(["Pending", "Provisioning", "Wiring", "Running"]);
      const upgraded = await crashAtEach(async () => {
        const path = `/stacks/${id}/upgrade`;
        const started = await responseTo<StackMigration>("POST", path, 202, { accepted_monthly_cost: 30.2 });
        const over = async () => {
          const migration = await fixture.eventually<StackMigration>(`/stacks/${id}/migrations/${started.id}`);
          return migration.finished_at === null ? undefined : migration;
        };
        const migration = await waitUntil("the migration is over", over, { withinMs: 300_000 });
        expect(migration).toMatchObject({ status: "Completed", steps: [{ status: "Completed" }] });
      });
      expect([...new Set(upgraded)]).toEqual(["Upgrading", "Running"]);
      expect(await stackNow(id)).toMatchObject({ status: "Running", template_version: "2.0.0" });
      const deleting = await crashAtEach(async () => {
        await responseTo("DELETE", `/stacks/${id}`, 202);
        const isDeleted = async () => (await fixture.platform.rest.insist("GET", `/stacks/${id}`)).status === 404;
        await waitUntil("the stack is deleted", isDeleted, { withinMs: 300_000 });
      });
      expect([...new Set(deleting)]).toEqual(["Deleting", "Deleted", "deleted"]);
    },
    longMs,
  );

  it(
    "at writes of services, machines and operations, too, lose nothing from the first to the last",
    async () => {
      const { crashes } = await crashing.during({ kinds: allKinds, ...sampled }, async () => {
        const record = await fixture.ended("life", await deploy(project("life")));
        expect(record).toMatchObject({ status: "Completed", project_status: "Running" });
        await deleted("life");
      });
      await expectNothingLeft();
      expect(crashes.length).toBeGreaterThanOrEqual(4);
    },
    longMs,
  );

  it("two controllers, one of which is killed repeatedly, create nothing twice and leave nothing", async () => {
    let second: SecondController = await startSecondController(fixture.platform);
    let kills = 0;
    const writes = await killAfterWrites(fixture.platform.directory, async (write) => {
      // Three of four writes survive, so that both have work to do.
      if (write % 4 !== 0) return;
      kills += 1;
      if (kills % 2 === 0) {
        const [controller] = controllers();
        if (controller !== undefined) killImmediately(controller);
        await waitUntil("another controller runs", () => {
          const [next] = controllers();
          return next !== undefined && next !== controller;
        });
        return;
      }
      killImmediately(second.pid);
      await second.stop();
      second = await startSecondController(fixture.platform);
    });
    try {
      // Writes during a kill cause none, so a round on a slow machine has few.
      for (let round = 1; kills < 4; round += 1) {
        const names = [1, 2, 3, 4].map((number) => `round-${round}-${number}`);
        const ended = await Promise.all(
          names.map(async (name, index) => {
            const id = await deploy(project(name));
            const isAborted = index === 3 && (await aborts(`/projects/${name}/deployments/${id}`));
            const { status } = await fixture.ended(name, id);
            return { status, isAborted };
          }),
        );
        // A deployment that was reported aborted is aborted; without a response it may have completed.
        for (const { status, isAborted } of ended) expect(status).toBe(isAborted ? "Aborted" : "Completed");
        await expectNothingLeft();
        await Promise.all(names.map(deleted));
      }
    } finally {
      await writes.stop();
      await second.stop();
    }
    await expectNothingLeft();
  }, 600_000);
});
