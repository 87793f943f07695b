import { describe, expect, it } from "vitest";
import { createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AccessUnderTest, status } from "./access-under-test.ts";

interface Deployed {
  readonly project_id: string;
  readonly deployment_id: string;
}

type Answers = readonly [own: number, ownAgain: number, othersSame: number];

/**
 * Statuses of three creations of one name: by an organization, by the same organization again, and by another one.
 * Only the second is 409, because a name is unique in its organization.
 */
// biome-ignore format: a table, aligned so that it reads as one
const uniqueInOrganization: readonly (readonly [path: string, body: object, answers: Answers])[] = [
  ["/managed-services",           { name: "same", database_type: "valkey", plan_name: "tier-1", storage_size_gb: 1 }, [202, 409, 202]],
  ["/app-services",               { name: "same" },                                                                  [201, 409, 201]],
  ["/api/v1/metrics-exports",     { name: "same", destination_type: "prometheus_remote_write", data_type: "metrics",
                                    configuration: { url: "https://1.1.1.1/w", bearer_token: "t" } },                 [201, 409, 201]],
  ["/alerts/channels",            { name: "same", type: "webhook", config: { url: "https://1.1.1.1/" } },            [201, 201, 201]],
  ["/webhooks",                   { url: "https://1.1.1.1/same" },                                                   [201, 201, 201]],
  ["/api-keys",                   { name: "same", scopes: ["services:read"] },                                       [201, 201, 201]],
  ["/users",                      { username: "same" },                                                              [201, 409, 409]],
];

/** Cases of names that organizations use, and of their visibility to other organizations. */
export function nameCases(fixture: AccessUnderTest): void {
  describe("names", () => {
    it("are unique in an organization, so that no other learns of them; user names alone are global", async () => {
      const organizations = createOrganizations(fixture.platform);
      try {
        const otherOrganization = await organizations.create("neighbor");
        const keys = [
          await organizations.createKey(fixture.organizationId),
          await organizations.createKey(otherOrganization),
        ];
        const [ownRest, otherRest] = keys.map(({ authorization }) => fixture.platform.rest.as(authorization));
        if (ownRest === undefined || otherRest === undefined) throw new Error("both have a key");
        for (const [path, body, expected] of uniqueInOrganization) {
          const statuses = [];
          for (const rest of [ownRest, ownRest, otherRest]) statuses.push(await status(rest.post(path, body)));
          expect([path, ...statuses]).toEqual([path, ...expected]);
        }
        const deployed = async (rest: typeof ownRest) => {
          const { json } = await rest.post<Deployed>("/projects/deploy", {
            descriptor: { name: "same", resources: [] },
          });
          await waitUntil("the deployment has ended", async () => {
            const path = `/projects/same/deployments/${json.deployment_id}`;
            return (await rest.get<{ status: string }>(path)).json.status === "Completed";
          });
          return json.project_id;
        };
        // A second deployment of a name changes the project of its organization.
        const project = await deployed(ownRest);
        expect(await deployed(ownRest)).toBe(project);
        expect(await deployed(otherRest)).not.toBe(project);
        const appOf = async (rest: typeof ownRest) =>
          (await rest.get<{ apps: { id: string }[] }>("/app-services")).json.apps[0]?.id ?? "";
        for (const rest of [ownRest, otherRest]) {
          const domains = `/app-services/${await appOf(rest)}/domains`;
          expect(await status(rest.post(domains, { name: "www.example.com" }))).toBe(201);
          expect(await status(rest.post(domains, { name: "www.example.com" }))).toBe(409);
        }
        const once = { headers: { "idempotency-key": "same" }, body: { name: "once", scopes: ["services:read"] } };
        for (const rest of [ownRest, ownRest, otherRest])
          expect(await status(rest.call("POST", "/api-keys", once))).toBe(201);
      } finally {
        organizations.close();
      }
    });

    it("of an organization are its members' choice: another's name is accepted, and its claim is released", async () => {
      const password = "correct horse battery";
      const outsider = await fixture.newUser("outsider", password, "viewer");
      const organizations = createOrganizations(fixture.platform);
      try {
        const otherOrganization = await fixture.owner.post<{ id: string }>("/organizations", { name: "taken" });
        expect(otherOrganization.status).toBe(201);
        await organizations.create("operated");
        for (const name of ["taken", "operated", "default"]) {
          const created = await outsider.post<{ id: string }>("/organizations", { name });
          expect([name, created.status]).toEqual([name, 201]);
          const path = `/organizations/${created.json.id}`;
          expect(await status(outsider.patch(path, { name: "another" }))).toBe(200);
          expect((await outsider.patch(path, { name })).json).toMatchObject({ name });
          expect(await status(outsider.delete(path))).toBe(204);
        }
        // Deleting a namesake leaves the claim of an operator's organization.
        await expect(organizations.create("operated")).rejects.toThrow("in use");
        expect(await status(fixture.owner.delete(`/organizations/${otherOrganization.json.id}`))).toBe(204);
      } finally {
        organizations.close();
      }
    });
  });
}
