import { decodeJwt } from "jose";
import * as client from "openid-client";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

const longMs = 600_000;
const kills = 20;
const userCount = 6;
const victims = ["issuer", "controller", "agent", "engine"] as const;

interface AppUser {
  readonly sub: string;
  token: string;
  refreshes: number;
  refused: string | undefined;
}

describe("users of an app, while its processes are killed", { timeout: longMs }, () => {
  const fixture = createSignInUnderTest();
  beforeAll(async () => {
    await fixture.start();
    await fixture.enable();
  }, longMs);
  afterAll(() => fixture.remove(), longMs);

  function kill(victim: (typeof victims)[number]): void {
    const { controllers, issuer, machines } = fixture.platform.processes();
    const [machine] = machines;
    const pids = { issuer: [issuer], controller: controllers, agent: [machine?.agent], engine: [machine?.engine] }[
      victim
    ];
    for (const pid of pids) if (pid !== undefined) killImmediately(pid);
  }

  it(`stay signed in through ${kills} kills, and new ones sign in`, async () => {
    const config = await fixture.discover();
    const all: AppUser[] = [];
    for (let n = 0; n < userCount; n += 1) {
      const signedIn = await fixture.signIn(`person${n}@example.com`);
      const sub = signedIn.claims()?.sub ?? "";
      all.push({ sub, token: signedIn.refresh_token ?? "", refreshes: 0, refused: undefined });
    }
    let isFinished = false;
    const using = all.map(async (user) => {
      while (!isFinished && user.refused === undefined) {
        try {
          const next = await client.refreshTokenGrant(config, user.token);
          expect(decodeJwt(next.access_token).sub).toBe(user.sub);
          user.token = next.refresh_token ?? "";
          user.refreshes += 1;
        } catch (error) {
          // A killed process gives no response, or 503; a rejection means that a user was signed out.
          if (error instanceof client.ResponseBodyError) user.refused = error.error;
        }
        // Time: the rate of a user.
        await delay(50);
      }
    });
    for (let n = 0; n < kills; n += 1) {
      const victim = victims[n % victims.length] ?? "issuer";
      const before = all.map(({ refreshes }) => refreshes);
      kill(victim);
      await waitUntil(
        `all are served again after kill ${n + 1}, of the ${victim}`,
        () => all.every(({ refreshes, refused }, at) => refused !== undefined || refreshes > (before[at] ?? 0) + 2),
        { withinMs: 60_000 },
      );
      expect(all.map(({ refused }) => refused)).toEqual(all.map(() => undefined));
    }
    isFinished = true;
    await Promise.all(using);
    // A process that was killed often is restarted after a pause.
    await waitUntil(
      "a controller answers",
      async () => (await fixture.platform.rest.get(fixture.path())).status === 200,
    );
    expect((await fixture.signIn("late@example.com")).claims()?.["email"]).toBe("late@example.com");
  });
});
