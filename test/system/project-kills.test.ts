import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Deployment, Project } from "../../sdk/src/index.ts";
import { killAtOnce } from "../support/platform/platform-processes.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { expectStatus } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";

// A controller is killed at ever later moments of a deployment, of one that is aborted, and of a deletion: each ends, and the services
// that exist are those of projects' records.

const spec = { plan: "tier-1", storage_gb: 1 };
const descriptorOf = (name: string) => ({
  name,
  resources: [
    { logical_name: "a", kind: "valkey", spec },
    { logical_name: "b", kind: "valkey", spec },
  ],
  dependencies: { b: ["a"] },
});

describe("a controller that is killed", () => {
  let platform: Platform;

  beforeAll(async () => {
    platform = await startPlatform();
  });
  afterAll(() => platform?.remove());

  async function killAfter(delayMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    const [controller] = platform.processes().controllers;
    if (controller !== undefined) killAtOnce(controller);
  }

  /** The answer, whoever gives it: a controller may be away. */
  const answered = <T>(path: string) =>
    waitUntil(
      `${path} answers`,
      async () => {
        const answer = await platform.rest.get<T>(path).catch(() => undefined);
        return answer?.status === 200 ? answer.json : undefined;
      },
      { withinMs: 60_000 },
    );

  const ended = (name: string, id: string) =>
    waitUntil(
      `deployment ${id} of ${name} is over`,
      async () => {
        const record = await answered<Deployment>(`/projects/${name}/deployments/${id}`);
        return record.finished_at === null ? undefined : record;
      },
      { withinMs: 180_000 },
    );

  async function expectNoOrphans(): Promise<void> {
    const { projects } = await answered<{ projects: Project[] }>("/projects?limit=200");
    const { services } = await answered<{ services: { id: string }[] }>("/managed-services?limit=200");
    const recorded = projects.flatMap(({ resources }) => resources.flatMap(({ resource_id: id }) => id ?? []));
    expect(services.map(({ id }) => id).toSorted()).toEqual(recorded.toSorted());
  }

  it.each([0, 40, 90, 150, 250, 400, 700, 1_200, 2_500])(
    "%i ms into a deployment and a deletion ends neither",
    async (delayMs) => {
      const name = `killed-${delayMs}`;
      const asked = await platform.rest.post<{ deployment_id: string }>("/projects/deploy", {
        descriptor: descriptorOf(name),
      });
      const { deployment_id: id } = expectStatus(asked, 202).json;
      await killAfter(delayMs);
      expect(await ended(name, id)).toMatchObject({ status: "Completed", project_status: "Running" });
      await expectNoOrphans();
      expectStatus(await platform.rest.delete(`/projects/${name}`), 202);
      await killAfter(delayMs);
      const isDeleted = async () => (await answered<Project>(`/projects/${name}`)).status === "Deleted";
      await waitUntil(`${name} is deleted`, isDeleted, { withinMs: 180_000 });
      await expectNoOrphans();
    },
    300_000,
  );

  it.each([0, 100, 400, 1_000])(
    "%i ms into a roll-back does not end it",
    async (delayMs) => {
      const name = `aborted-${delayMs}`;
      const asked = await platform.rest.post<{ deployment_id: string }>("/projects/deploy", {
        descriptor: descriptorOf(name),
      });
      const { deployment_id: id } = expectStatus(asked, 202).json;
      const isMade = async () => (await answered<Project>(`/projects/${name}`)).resources[0]?.resource_id !== null;
      await waitUntil("a resource is made", isMade);
      expectStatus(await platform.rest.post(`/projects/${name}/deployments/${id}/abort`), 202);
      await killAfter(delayMs);
      expect(await ended(name, id)).toMatchObject({ status: "Aborted", project_status: "Failed" });
      await expectNoOrphans();
    },
    300_000,
  );
});
