import { describe, expect, it } from "vitest";
import type { Session, CurrentSession, SessionCode } from "@holdfast/sdk/responses.ts";
import { basic, type RestOptions } from "@holdfast/testing/api/rest.ts";
import type { RestResponse } from "@holdfast/testing/api/rest-response.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AccessUnderTest, type Created, type Entry, status } from "./access-under-test.ts";

const page = { "sec-fetch-site": "same-origin", "sec-fetch-dest": "empty" };

/** A browser that is signed in: it sends its cookie, and its page the CSRF token. */
interface Browser {
  readonly session: CurrentSession;
  readonly cookie: string;
  call(verb: string, path: string, options?: RestOptions): Promise<RestResponse<Record<string, unknown>>>;
}

/** Cases of browser sessions. */
export function sessionCases(fixture: AccessUnderTest): void {
  const anonymous = () => fixture.platform.rest.as(undefined);

  async function signIn(body: object): Promise<Browser> {
    const {
      status: code,
      json,
      headers,
    } = await anonymous().post<CurrentSession>("/sessions", body, {
      headers: { ...page, "user-agent": "Firefox/140.0" },
    });
    expect(code).toBe(201);
    const [set = ""] = headers["set-cookie"] ?? [];
    expect(set).toMatch(/^__Host-holdfast=hfb_[\w-]+; Path=\/; Max-Age=\d+; Secure; HttpOnly; SameSite=Strict$/);
    const cookie = set.slice(0, set.indexOf(";"));
    const call: Browser["call"] = (verb, path, options = {}) =>
      anonymous().call(verb, path, {
        ...options,
        headers: { cookie, ...page, "holdfast-csrf": json.csrf_token, ...options.headers },
      });
    return { session: json, cookie, call };
  }

  describe("sessions", () => {
    it("a user signs in by password, reads and changes, and signs out", async () => {
      await fixture.newUser("sara", "a password for pages", "developer");
      const browser = await signIn({ username: "sara", password: "a password for pages" });
      expect(browser.session).toMatchObject({ user: "sara", organization_id: null });
      expect(browser.session.organizations).toMatchObject([{ id: fixture.organizationId, role: "developer" }]);
      expect((await browser.call("GET", "/me")).json).toMatchObject({ kind: "user", id: "sara", role: "developer" });
      const token = { scopes: ["services:read"], ttl_seconds: 60 };
      expect(await status(browser.call("POST", "/tokens", { body: token }))).toBe(201);
      const current = await browser.call("GET", "/sessions/current");
      expect(current.json).toEqual(browser.session);
      const { json } = await browser.call("GET", "/sessions");
      expect(json.sessions).toMatchObject([{ id: browser.session.id, current: true, user_agent: "Firefox/140.0" }]);
      const out = await browser.call("DELETE", "/sessions/current");
      expect(out.status).toBe(204);
      expect(out.headers["set-cookie"]?.[0]).toContain("Max-Age=0");
      expect(await status(browser.call("GET", "/me"))).toBe(401);
      await waitUntil("sign-in, change and sign-out are in the audit log", async () => {
        const { json: log } = await fixture.platform.rest.get<{ entries: Entry[] }>("/audit-log?actor=user:sara");
        const actions = new Set(log.entries.map(({ action }) => action));
        return ["session.create", "session.delete", "token.create"].every((action) => actions.has(action));
      });
    });

    it("a cookie counts for pages of this origin only, and a change needs the CSRF token", async () => {
      const { cookie, session, call } = await signIn({ username: "sara", password: "a password for pages" });
      const body = { scopes: ["services:read"], ttl_seconds: 60 };
      for (const site of ["cross-site", "same-site"])
        expect(await status(call("POST", "/tokens", { body, headers: { "sec-fetch-site": site } }))).toBe(403);
      expect(await status(call("GET", "/me", { headers: { "sec-fetch-site": "none" } }))).toBe(401);
      expect(await status(anonymous().get("/me", { headers: { cookie } }))).toBe(401);
      for (const wrong of ["", session.csrf_token.toUpperCase(), session.id]) {
        const refused = await call("POST", "/tokens", { body, headers: { "holdfast-csrf": wrong } });
        expect(refused).toMatchObject({ status: 403, json: { code: "csrf_token_invalid" } });
      }
      const admin = "/holdfast.admin.v1.FleetService/ListMachines";
      // Connect's errors have another form, which the rules of responses reject with the text of the error.
      const byConnect = call("POST", admin, { body: {}, headers: { "holdfast-csrf": "" } });
      await expect(byConnect).rejects.toThrow("CSRF_TOKEN_INVALID");
      // An Authorization header wins.
      expect(await status(call("GET", "/me", { headers: { authorization: "Bearer hft_none" } }))).toBe(401);
    });

    it("a browser gets no challenge that opens a dialog, and a wrong password is refused", async () => {
      const refused = await anonymous().post(
        "/sessions",
        { username: "sara", password: "not it at all" },
        { headers: page },
      );
      expect(refused).toMatchObject({ status: 401, json: { code: "unauthenticated" } });
      expect(refused.headers["www-authenticate"]).not.toContain("Basic");
      expect((await anonymous().get("/me")).headers["www-authenticate"]).toContain("Basic");
      for (const body of [{}, { username: "sara" }, { password: "x" }, { username: "sara", code: "hfc_x" }])
        expect(await status(anonymous().post("/sessions", body))).toBe(400);
    });

    it("a code signs a browser in once; keys and other users' credentials get none", async () => {
      const sara = fixture.platform.rest.as(basic("sara", "a password for pages"));
      const { json: code } = await sara.post<SessionCode>("/sessions/codes", {});
      const browser = await signIn({ code: code.code });
      expect(browser.session.user).toBe("sara");
      expect(await status(anonymous().post("/sessions", { code: code.code }))).toBe(401);
      const { json: token } = await sara.post<Created>("/tokens", { scopes: ["services:read"], ttl_seconds: 600 });
      const holder = fixture.platform.rest.as(`Bearer ${token.token}`);
      const limited = await signIn({ code: (await holder.post<SessionCode>("/sessions/codes", {})).json.code });
      expect(limited.session).toMatchObject({ user: "sara", organization_id: fixture.organizationId });
      expect(await status(limited.call("GET", "/managed-services"))).toBe(200);
      expect(await status(limited.call("GET", "/sessions"))).toBe(403);
      expect(await status(limited.call("DELETE", "/sessions/all"))).toBe(403);
      expect(await status(sara.delete(`/tokens/${token.id}`))).toBe(204);
      expect(await status(limited.call("GET", "/managed-services"))).toBe(401);
      const byKey = await fixture.platform.rest.post("/sessions/codes", {});
      expect(byKey).toMatchObject({ status: 403, json: { code: "scope_missing" } });
      expect(byKey.json.detail).toContain("holdfast login");
    });

    it("sessions end one by one, all together, and with the password", async () => {
      const password = "a password for pages";
      const [first, second, third] = [
        await signIn({ username: "sara", password }),
        await signIn({ username: "sara", password }),
        await signIn({ username: "sara", password }),
      ];
      const sessionOfOwner = await signIn({
        code: (await fixture.owner.post<SessionCode>("/sessions/codes", {})).json.code,
      });
      expect(await status(sessionOfOwner.call("DELETE", `/sessions/${first.session.id}`))).toBe(404);
      expect(await status(first.call("DELETE", `/sessions/${second.session.id}`))).toBe(204);
      expect(await status(second.call("GET", "/me"))).toBe(401);
      expect(await status(third.call("GET", "/me"))).toBe(200);
      expect(await status(first.call("DELETE", "/sessions/all"))).toBe(204);
      expect(await status(third.call("GET", "/me"))).toBe(401);
      const last = await signIn({ username: "sara", password });
      const change = { current_password: password, new_password: "another one for pages" };
      expect(await status(last.call("POST", "/users/me/password", { body: change }))).toBe(204);
      expect(await status(last.call("GET", "/me"))).toBe(401);
      expect(await status(sessionOfOwner.call("GET", "/me"))).toBe(200);
    });

    it("a user has at most 50 sessions", async () => {
      const body = { username: "sara", password: "another one for pages" };
      const first = await signIn(body);
      for (let count = 1; count < 51; count += 1) await signIn(body);
      expect(await status(first.call("GET", "/me"))).toBe(401);
      const last = await signIn(body);
      const { json } = await last.call("GET", "/sessions?limit=200");
      expect(json.sessions as Session[]).toHaveLength(50);
    });
  });
}
