import { expect } from "vitest";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { basic, type Rest } from "@holdfast/testing/api/rest.ts";
import type { RestResponse } from "@holdfast/testing/api/rest-response.ts";

/** Response to the creation of an object with a secret. */
export interface Created {
  readonly id: string;
  readonly secret: string;
  readonly token: string;
  readonly setup_token: string;
}

/** An entry of the audit log. */
export interface Entry {
  readonly actor: string;
  readonly action: string;
  readonly object_id: string;
  readonly result: string;
}

/** One platform with its first organization, which the cases of this folder share. */
export interface AccessUnderTest {
  readonly platform: Platform;
  /** Owner of the installation's first organization. */
  readonly owner: Rest;
  readonly organizationId: string;
  /** A call in the name of an organization. */
  of(
    rest: Rest,
    organization: string,
    verb: string,
    path: string,
    body?: unknown,
  ): Promise<RestResponse<Created & Record<string, unknown>>>;
  /** A user with a password and a role in the first organization. */
  newUser(username: string, password: string, role: string): Promise<Rest>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export async function status(response: Promise<RestResponse<unknown>>): Promise<number> {
  return (await response).status;
}

export function createAccessUnderTest(): AccessUnderTest {
  let platform: Platform | undefined;
  let first: Pick<AccessUnderTest, "platform" | "owner" | "organizationId"> | undefined;
  const started = () => {
    if (first === undefined) throw new Error("the platform was not started");
    return first;
  };
  const fixture: AccessUnderTest = {
    get platform() {
      return started().platform;
    },
    get owner() {
      return started().owner;
    },
    get organizationId() {
      return started().organizationId;
    },
    of: (rest, organization, verb, path, body) =>
      rest.call(verb, path, {
        headers: { "holdfast-organization": organization },
        ...(body === undefined ? {} : { body }),
      }),
    async newUser(username, password, role) {
      const { owner, organizationId } = fixture;
      const created = await fixture.of(owner, organizationId, "POST", "/users", { username });
      expect(created.status).toBe(201);
      const anonymous = fixture.platform.rest.as(undefined);
      const body = { token: created.json.setup_token, password };
      expect(await status(anonymous.post("/users/setup", body))).toBe(204);
      expect(await status(anonymous.post("/users/setup", body))).toBe(400);
      const path = `/organizations/${organizationId}/members`;
      expect(await status(fixture.of(owner, organizationId, "POST", path, { user_id: username, role }))).toBe(201);
      return fixture.platform.rest.as(basic(username, password));
    },
    async start() {
      platform = await startPlatform();
      const owner = platform.rest.as(platform.operator);
      const { json } = await owner.get<{ organization_id: string }>("/me");
      first = { platform, owner, organizationId: json.organization_id };
    },
    async remove() {
      await platform?.remove();
    },
  };
  return fixture;
}
