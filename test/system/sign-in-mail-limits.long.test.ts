import { afterAll, beforeAll, expect, it } from "vitest";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createSignInUnderTest, type AuthJson } from "./sign-in/sign-in-under-test.ts";

/** The limits of an app's mails, as its owner and its users see them. */
const fixture = createSignInUnderTest();

beforeAll(async () => {
  await fixture.start();
  await fixture.enable();
}, 180_000);
afterAll(fixture.remove);

const health = async () =>
  (await fixture.platform.rest.get<AuthJson & { health: { status: string; reason?: string } }>(fixture.path())).json
    .health;

/** Requests a mail to this address, from a distinct source address; returns the page. */
async function requestMail(address: string, source: number) {
  const browser = fixture.browser({ from: `127.0.48.${source}` });
  const { page } = await fixture.begin(browser, await fixture.discover());
  return browser.submit(page, { email: address });
}

const sentTo = (prefix: string) =>
  fixture.mail.received.filter(({ to }) => to.some((address) => address.startsWith(prefix))).length;

it("health reports whose mails are dropped, and that mails are sent again", { timeout: 180_000 }, async () => {
  const { rest } = fixture.platform;
  for (const name of ["ann", "u1", "u2", "u3", "u4"])
    expectStatus(await rest.post(fixture.path("/users"), { email: `${name}@example.com` }), 201);
  expectStatus(await rest.patch(fixture.path(), { mails_per_hour: 6 }), 200);
  let requested = 0;
  const reasons = (words: string, act: () => Promise<unknown>) =>
    waitUntil(
      `health reports: ${words}`,
      async () => {
        await act();
        return (await health()).reason?.includes(words);
      },
      { everyMs: 500, withinMs: 25_000 },
    );
  await reasons("addresses without a user get no mails", () =>
    requestMail(`unknown${(requested += 1)}@example.com`, requested),
  );
  const auth = await fixture.cli("auth", "get", "shop");
  expect(auth.stdout).toContain("addresses without a user get no mails");
  // The half for addresses without a user is used up, and the other half remains for users.
  const before = sentTo("unknown");
  expect((await requestMail(`unknown${(requested += 1)}@example.com`, requested)).status).toBe(200);
  await requestMail("ann@example.com", 200);
  await fixture.mailTo("ann@example.com");
  expect(sentTo("unknown")).toBe(before);
  let users = 0;
  await reasons("only browsers that signed in before get mails", () =>
    requestMail(`u${(users += 1)}@example.com`, 200 + users),
  );
  expect((await requestMail("u9@example.com", 220)).text).toContain("sends no more mails");
  expectStatus(await rest.patch(fixture.path(), { mails_per_hour: 10_000 }), 200);
  await waitUntil("mails are sent again", async () => (await health()).status === "healthy");
  await requestMail("late@example.com", 221);
  await fixture.mailTo("late@example.com");
});
