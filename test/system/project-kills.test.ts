import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Project, Stack, StackMigration } from "../../sdk/src/index.ts";
import { type DeliveryGround, startDeliveryGround, valkeySpec } from "../support/composition/delivery-ground.ts";
import { killAfterWrites } from "../support/composition/kill-after-write.ts";
import { killAtOnce } from "../support/platform/platform-processes.ts";
import { type SecondController, startSecondController } from "../support/platform/second-controller.ts";
import { expectStatus } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";

// A controller is killed after each write of a deployment, of a later one, of a roll-back, a launch, an upgrade and a deletion: each
// ends as if nobody had been killed, and the services that exist are those of records.

const spec = { plan: "tier-1", storage_gb: 1 };
const valkey = (name: string) => ({ logical_name: name, kind: "valkey", spec });
const project = (name: string, resources: readonly string[] = ["a", "b"]) => ({
  name,
  resources: resources.map(valkey),
  dependencies: { b: ["a"] },
});
const oneCache = (plan: string) => ({
  title: "A cache",
  description: "A Valkey.",
  resources: [{ logical_name: "cache", kind: "database", spec: valkeySpec(plan) }],
});

describe("controllers that are killed", () => {
  let ground: DeliveryGround;

  beforeAll(async () => {
    ground = await startDeliveryGround((write) => write("stacks", "one-cache", "1.0.0", oneCache("tier-1")));
  });
  afterAll(() => ground?.remove());

  const controllers = () => ground.platform.processes().controllers;

  /** kill -9 of the controller after each write, with the next one running before the next kill. */
  async function killing<T>(run: () => Promise<T>): Promise<{ readonly ended: T; readonly kills: number }> {
    const writes = await killAfterWrites(ground.platform.directory, async () => {
      const [controller] = controllers();
      if (controller !== undefined) killAtOnce(controller);
      await waitUntil("another controller is there", () => {
        const [next] = controllers();
        return next !== undefined && next !== controller;
      });
    });
    try {
      return { ended: await run(), kills: writes.count };
    } finally {
      await writes.stop();
    }
  }

  /** The answer of whichever controller gives one. */
  const asked = async <T>(verb: string, path: string, status: number, body?: unknown): Promise<T> => {
    const key = { "idempotency-key": randomUUID() };
    const options = { withinMs: 90_000, headers: key, ...(body !== undefined && { body }) };
    return expectStatus(await ground.platform.rest.insist<T>(verb, path, options), status).json;
  };
  const deploy = async (descriptor: object) =>
    (await asked<{ deployment_id: string }>("POST", "/projects/deploy", 202, { descriptor })).deployment_id;

  /** Was the abort accepted? It is not once the deployment is over. */
  async function aborts(deployment: string): Promise<boolean> {
    const headers = { "idempotency-key": randomUUID() };
    const { status } = await ground.platform.rest.insist("POST", `${deployment}/abort`, { headers, withinMs: 90_000 });
    expect([202, 409]).toContain(status);
    return status === 202;
  }

  async function expectNoOrphans(): Promise<void> {
    const { projects } = await ground.answered<{ projects: Project[] }>("/projects?limit=200");
    const { stacks } = await ground.answered<{ stacks: Stack[] }>("/stacks?limit=200");
    const { services } = await ground.answered<{ services: { id: string }[] }>("/managed-services?limit=200");
    const recorded = [
      ...projects.flatMap(({ resources }) => resources.flatMap(({ resource_id: id }) => id ?? [])),
      ...stacks.flatMap(({ resources }) => resources.flatMap(({ service_id: id }) => id ?? [])),
    ];
    expect(services.map(({ id }) => id).toSorted()).toEqual(recorded.toSorted());
  }

  it("after each write of a deployment, of a later one, and of the deletion, lose nothing", async () => {
    const first = await killing(async () => ground.ended("shop", await deploy(project("shop"))));
    expect(first.ended).toMatchObject({ status: "Completed", project_status: "Running" });
    await expectNoOrphans();
    const before = await ground.project("shop");
    const later = await killing(async () => ground.ended("shop", await deploy(project("shop", ["a", "b", "c"]))));
    expect(later.ended).toMatchObject({ status: "Completed", project_status: "Running" });
    const after = await ground.answered<Project>("/projects/shop");
    expect(after.resources.slice(0, 2)).toEqual(before.resources);
    await expectNoOrphans();
    const deleted = await killing(async () => {
      await asked("DELETE", "/projects/shop", 202);
      const isDeleted = async () => (await ground.answered<Project>("/projects/shop")).status === "Deleted";
      await waitUntil("the project is deleted", isDeleted, { withinMs: 180_000 });
    });
    await expectNoOrphans();
    // Created, begun, two made, two arrived, all running, wired; and so on.
    expect([first.kills >= 6, later.kills >= 4, deleted.kills >= 3]).toEqual([true, true, true]);
  }, 600_000);

  it("after each write of a roll-back leave nothing", async () => {
    const id = await deploy(project("brief"));
    const isMade = async () => (await ground.answered<Project>("/projects/brief")).resources[0]?.resource_id !== null;
    await waitUntil("a resource is made", isMade);
    const { ended, kills } = await killing(async () => {
      await asked("POST", `/projects/brief/deployments/${id}/abort`, 202);
      return ground.ended("brief", id);
    });
    expect(ended).toMatchObject({ status: "Aborted", project_status: "Failed" });
    expect((await ground.answered<Project>("/projects/brief")).resources).toEqual([]);
    await expectNoOrphans();
    expect(kills).toBeGreaterThanOrEqual(2);
  }, 300_000);

  it("after each write of a launch and of an upgrade bring both about", async () => {
    const stackOf = (id: string) => ground.answered<Stack>(`/stacks/${id}`);
    const body = { name: "cached", template_name: "one-cache", accepted_monthly_cost: 15.2 };
    ground.writeTemplate("stacks", "one-cache", "2.0.0", oneCache("tier-2"));
    const { ended: id, kills: launching } = await killing(async () => {
      const made = (await asked<Stack>("POST", "/stacks", 201, body)).id;
      const isRunning = async () => (await stackOf(made)).status === "Running";
      await waitUntil("the stack runs", isRunning, { withinMs: 180_000 });
      return made;
    });
    await expectNoOrphans();
    const { ended: migration, kills: upgrading } = await killing(async () => {
      const path = `/stacks/${id}/upgrade`;
      const begun = await asked<StackMigration>("POST", path, 202, { accepted_monthly_cost: 30.2 });
      const now = () => ground.answered<StackMigration>(`/stacks/${id}/migrations/${begun.id}`);
      return waitUntil(
        "the migration is over",
        async () => {
          const seen = await now();
          return seen.finished_at === null ? undefined : seen;
        },
        { withinMs: 180_000 },
      );
    });
    expect(migration).toMatchObject({ status: "Completed", steps: [{ status: "Completed" }] });
    expect(await stackOf(id)).toMatchObject({ status: "Running", template_version: "2.0.0" });
    await expectNoOrphans();
    expect([launching >= 4, upgrading >= 3]).toEqual([true, true]);
    await asked("DELETE", `/stacks/${id}`, 202);
  }, 600_000);

  it("two at once, one of which dies now and then, make nothing twice and leave nothing behind", async () => {
    let second: SecondController = await startSecondController(ground.platform);
    let kills = 0;
    const writes = await killAfterWrites(ground.platform.directory, async (write) => {
      // Three of four writes go on, so that both have something to do.
      if (write % 4 !== 0) return;
      kills += 1;
      if (kills % 2 === 0) {
        const [controller] = controllers();
        if (controller !== undefined) killAtOnce(controller);
        await waitUntil("another controller is there", () => {
          const [next] = controllers();
          return next !== undefined && next !== controller;
        });
        return;
      }
      killAtOnce(second.pid);
      await second.stop();
      second = await startSecondController(ground.platform);
    });
    const names = ["one", "two", "three", "four"];
    try {
      const ended = await Promise.all(
        names.map(async (name) => {
          const id = await deploy(project(name));
          const isAborted = name === "four" && (await aborts(`/projects/four/deployments/${id}`));
          const { status } = await ground.ended(name, id);
          return { status, isAborted };
        }),
      );
      // Whoever was told that it is aborted finds it so; while nobody answered it may have come about.
      for (const { status, isAborted } of ended) expect(status).toBe(isAborted ? "Aborted" : "Completed");
      await expectNoOrphans();
      await Promise.all(
        names.map(async (name) => {
          await asked("DELETE", `/projects/${name}`, 202);
          const isDeleted = async () => (await ground.answered<Project>(`/projects/${name}`)).status === "Deleted";
          await waitUntil(`${name} is deleted`, isDeleted, { withinMs: 180_000 });
        }),
      );
    } finally {
      await writes.stop();
      await second.stop();
    }
    await expectNoOrphans();
    expect(kills).toBeGreaterThanOrEqual(4);
  }, 600_000);
});
