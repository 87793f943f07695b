import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createAccessUnderTest, type Entry, status } from "./access/access-under-test.ts";
import { credentialCases } from "./access/credentials.ts";
import { organizationCases } from "./access/organizations.ts";
import { nameCases } from "./access/names.ts";
import { userCases } from "./access/users.ts";
import { sessionCases } from "./access/sessions.ts";

describe("access", () => {
  const fixture = createAccessUnderTest();
  beforeAll(fixture.start);
  afterAll(fixture.remove);

  userCases(fixture);
  organizationCases(fixture);
  nameCases(fixture);
  credentialCases(fixture);
  sessionCases(fixture);

  it("executed and rejected changes are in the audit log, and no secret is in the store", async () => {
    expect(await status(fixture.platform.rest.post("/api-keys", { surprise: 1 }))).toBe(400);
    const entries = async (query: string) =>
      (await fixture.platform.rest.get<{ entries: Entry[] }>(`/audit-log?${query}`)).json.entries;
    await waitUntil("the refusal is in the audit log", async () =>
      (await entries("actor=user:anna")).some(({ result }) => result === "refused"),
    );
    await waitUntil("so is that of a body that was not valid", async () =>
      (await entries("limit=50")).some(({ action }) => action === "api-key.create invalid_request"),
    );
    const wrong = { username: "admin", password: "not the password" };
    expect(await status(fixture.platform.rest.as(undefined).post("/sessions", wrong))).toBe(401);
    await waitUntil("so is a failed sign-in", async () =>
      (await entries("object=admin&action=session.create")).some(
        ({ action, actor }) => action === "session.create unauthenticated" && actor === "anonymous",
      ),
    );
    const ofKeys = await entries("action=api-key&limit=50");
    expect(new Set(ofKeys.map(({ action }) => action.split(/[. ]/)[0]))).toEqual(new Set(["api-key"]));
    expect(await entries("object=anna&action=user.set-up")).toHaveLength(1);
    expect((await entries("action=member.add&limit=1"))[0]).toMatchObject({ actor: "user:admin", result: "ok" });
    const stored = [...(await dumpEtcd(fixture.platform.directory)).values()].join("\n");
    expect(stored).toContain("$argon2id$");
    for (const password of ["correct horse battery", "a second password"]) expect(stored).not.toContain(password);
    // Four characters alone also occur by chance in sealed data.
    for (const secret of [
      /hfs_[\w-]{32}/,
      /hft_[0-9a-f]{32}/,
      /hfu_[\w-]+\.[\w-]{32}/,
      /hfb_[0-9a-f]{32}/,
      /hfc_[\w-]{32}/,
    ])
      expect(stored).not.toMatch(secret);
  });

  it("responses have the number of remaining requests", async () => {
    const { headers } = await fixture.platform.rest.get("/me");
    expect(Number(headers["ratelimit-remaining"])).toBeLessThan(Number(headers["ratelimit-limit"]));
  });
});
