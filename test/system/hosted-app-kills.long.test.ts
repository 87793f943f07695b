import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { Agent } from "node:https";
import type { App, AppDeployments, Attachment, Operation } from "@holdfast/sdk/index.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createHostedApps, type HostedApps, pushAppImage } from "@holdfast/testing/platform/hosted-apps.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { type AppImages, createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// Each change of a hosted app, while controllers and agents are killed at each of its steps. Clients call the app all
// the time.

const skipped = asRoot ? await requireRecipes(import.meta.filename, "apps") : "needs root: containers of a machine";
const withinMs = 300_000;

describe.skipIf(skipped !== undefined)("a hosted app whose agents and controllers are killed", () => {
  let platform: Platform;
  let directory: string;
  let images: AppImages;
  let apps: HostedApps;
  let app: App;
  let url: string;
  /** Value of a variable that the programs of this run have. */
  const run = randomUUID();
  const path = () => `/app-services/${app.id}`;

  beforeAll(async () => {
    directory = programDirectory("holdfast-push");
    [platform, images] = await Promise.all([startPlatform(), createAppImages(directory)]);
    apps = createHostedApps(platform);
    await pushAppImage(platform, images, { name: "shop", tag: "1" }, { RUN: run, NOTE: "first" });
    await pushAppImage(platform, images, { name: "shop", tag: "2" }, { RUN: run, NOTE: "second" });
    app = await apps.createRunning("shop", { image_ref: "shop:1", drain_seconds: 2 });
    url = app.hosted?.url ?? "";
  }, 600_000);
  afterAll(async () => {
    await platform?.remove();
    await rm(directory, { recursive: true, force: true });
  });

  function killControllers(): void {
    for (const controller of platform.processes().controllers) killImmediately(controller);
  }

  function killAgents(): void {
    for (const agent of platform.processes().machines.flatMap(({ agents }) => agents)) killImmediately(agent);
  }

  /** Number of programs of the app on this host. */
  function programs(): number {
    const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const textOf = (pid: string, file: string) => {
      try {
        return readFileSync(`/proc/${pid}/${file}`, "utf8");
      } catch {
        // The process has ended.
        return "";
      }
    };
    const isOfApp = (pid: string) =>
      textOf(pid, "cmdline") === "node\0/app/server.mjs\0" && textOf(pid, "environ").includes(`RUN=${run}`);
    return all.filter(isOfApp).length;
  }

  /**
   * Requests a change, and kills agents and controllers at its start and at each further step of it.
   * Returns the operation's status.
   */
  async function changedWithKills(request: () => Promise<{ readonly json: Pick<App, "operation"> }>): Promise<string> {
    const { json } = await request();
    const { id } = json.operation ?? {};
    expect(id).toBeDefined();
    const kinds = [killControllers, killAgents];
    let kills = 0;
    let step: string | null | undefined;
    const isOver = async () => {
      const response = await platform.rest.get<Operation>(`/operations/${id}`).catch(() => undefined);
      if (response?.status !== 200) return undefined;
      const operation = response.json;
      if (operation.finished_at !== null) return operation;
      if (operation.step !== step) {
        step = operation.step;
        kinds[kills++ % kinds.length]?.();
      }
      return undefined;
    };
    killAgents();
    const { status } = await waitUntil("the operation has ended", isOver, { withinMs, everyMs: 50 });
    expect(kills).toBeGreaterThan(0);
    return status;
  }

  /** Number of requests that failed, and that did not, while the work ran. */
  async function called(work: () => Promise<void>): Promise<{ failed: string[]; succeeded: number }> {
    const agent = new Agent({ keepAlive: true, maxSockets: 2 });
    const over = new AbortController();
    const counts = { failed: [] as string[], succeeded: 0 };
    const client = async () => {
      while (!over.signal.aborted) {
        const answer = await apps.request({ url, agent }).catch((error: unknown) => ({ status: 0, text: `${error}` }));
        if (answer.status === 200) counts.succeeded += 1;
        else counts.failed.push(`${answer.status} ${answer.text}`);
      }
    };
    const clients = [client(), client()];
    try {
      await work();
    } finally {
      over.abort();
      await Promise.all(clients);
      agent.destroy();
    }
    return counts;
  }

  /** Asserts that clients reach this image on so many machines, and that no other program of the app is left. */
  async function requireServed(note: string, replicas = 1): Promise<void> {
    await waitUntil("one program of each machine remains", async () => programs() === replicas, { withinMs });
    const isRunning = async () => (await apps.get(app.id).catch(() => undefined))?.status === "Running";
    await waitUntil("the app runs", isRunning, { withinMs });
    const answers = async () => {
      const { status, text } = await apps.request({ url }).catch(() => ({ status: 0, text: "" }));
      return status === 200 && (JSON.parse(text) as { note: string }).note === note;
    };
    await waitUntil(`${note} serves`, answers, { withinMs });
    const { json } = await platform.rest.insist<AppDeployments>("GET", `${path()}/deployments`);
    expect(json.deployments.filter(({ serves }) => serves)).toHaveLength(1);
  }

  test("a deployment replaces the image without a failed request", async () => {
    const counts = await called(async () => {
      const change = () => platform.rest.insist<App>("PATCH", path(), { body: { image_ref: "shop:2" } });
      expect(await changedWithKills(change)).toBe("completed");
    });
    expect(counts.failed).toEqual([]);
    expect(counts.succeeded).toBeGreaterThan(10);
    await requireServed("second");
  }, 600_000);

  test("a deployment that fails leaves the one before serving, without a failed request", async () => {
    const counts = await called(async () => {
      const change = () => platform.rest.insist<App>("PATCH", path(), { body: { env: { ENDS: "3" } } });
      expect(await changedWithKills(change)).toBe("failed");
    });
    expect(counts.failed).toEqual([]);
    await requireServed("second");
  }, 600_000);

  test("more and fewer machines serve without a failed request", async () => {
    const failed: string[] = [];
    for (const replicas of [2, 1]) {
      const counts = await called(async () => {
        const change = () => platform.rest.insist<App>("PATCH", path(), { body: { replicas } });
        expect(await changedWithKills(change)).toBe("completed");
      });
      failed.push(...counts.failed);
      await requireServed("second", replicas);
    }
    expect(failed).toEqual([]);
  }, 900_000);

  test("a stop ends its programs, and a start brings one back", async () => {
    const power = (verb: string) => () => platform.rest.insist<App>("POST", `${path()}/${verb}`, { body: {} });
    expect(await changedWithKills(power("stop"))).toBe("completed");
    await waitUntil("no program remains", async () => programs() === 0, { withinMs });
    expect(await changedWithKills(power("start"))).toBe("completed");
    await requireServed("second");
  }, 600_000);

  test("an attached database is reached, and its user is dropped once it is detached", async () => {
    const body = { env: {} };
    await apps.ended((await platform.rest.insist<App>("PATCH", path(), { body })).json);
    const { service } = await createServices(platform).createRunning("orders", { allowed_cidrs: [] });
    const attachments = `${path()}/attachments`;
    let attached: Attachment | undefined;
    const counts = await called(async () => {
      const attach = async () => {
        const response = await platform.rest.insist<Attachment>("POST", attachments, {
          body: { service_id: service.id },
        });
        attached = response.json;
        return response;
      };
      expect(await changedWithKills(attach)).toBe("completed");
    });
    expect(counts.failed).toEqual([]);
    await requireServed("second");
    const query = `/query?sql=${encodeURIComponent("SELECT current_user AS role")}`;
    const rows = async () => {
      const { status, text } = await apps.request({ url, path: query });
      return status === 200 ? text : undefined;
    };
    expect(await waitUntil("it reaches the database", rows, { withinMs })).toBe('[{"role":"app_user"}]');

    const detach = async () => {
      await platform.rest.insist("DELETE", `${attachments}/${attached?.id}`);
      return { json: { operation: (await apps.get(app.id)).operation } };
    };
    expect(await changedWithKills(detach)).toBe("completed");
    await requireServed("second");
    const user = `/managed-services/${service.id}/database-users/${attached?.username}`;
    const isDropped = async () => (await platform.rest.get(user).catch(() => undefined))?.status === 404;
    await waitUntil("its user is dropped", isDropped, { withinMs });
  }, 900_000);
});
