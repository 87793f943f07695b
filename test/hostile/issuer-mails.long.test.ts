import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Browser, Page } from "@holdfast/testing/network/browser.ts";
import { type IssuerProcess, startIssuerProcess } from "@holdfast/testing/servers/issuer-process.ts";

/** Attackers who know addresses of users use up limits of mails, and compare responses. */
let fixture: IssuerProcess;

beforeAll(async () => {
  fixture = await startIssuerProcess();
});
beforeEach(async () => {
  await fixture.rows("TRUNCATE _mdb_auth.login_tokens");
});
afterAll(() => fixture?.remove());

async function addUsers(...emails: string[]): Promise<void> {
  for (const email of emails)
    await fixture.rows("INSERT INTO _mdb_auth.users (id, email) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
      randomUUID(),
      email,
    ]);
}

/** Makes requested mails two minutes older, and restarts the issuer without its counts in memory. */
async function passTwoMinutes(change: Parameters<IssuerProcess["restart"]>[0] = {}): Promise<void> {
  await fixture.rows("UPDATE _mdb_auth.login_tokens SET created_at = created_at - interval '2 minutes'");
  await fixture.restart(change);
}

async function requestMail(email: string, from: string, browser: Browser = fixture.browser(from)): Promise<Page> {
  return browser.submit(await fixture.begin(browser, { prompt: "login" }), { email });
}

/** Sources of the mails to an address. */
const sourcesOf = async (email: string) =>
  (await fixture.rows<{ source: string }>("SELECT source FROM _mdb_auth.login_tokens WHERE email = $1", [email])).map(
    ({ source }) => source,
  );
const mailsTo = (email: string) => fixture.mail.received.filter(({ to }) => to.includes(email)).length;

test("requests from five other sources leave an owner's address a mail", async () => {
  await addUsers("victim@example.com");
  for (let at = 1; at <= 5; at += 1) await requestMail("victim@example.com", `127.0.82.${at}`);
  expect((await requestMail("victim@example.com", "127.0.83.1")).status).toBe(200);
  expect(await sourcesOf("victim@example.com")).toContain("127.0.83.1");
});

test("a source that knows the addresses of all users leaves mails to other sources", async () => {
  await fixture.restart({ mailsPerHour: 24 });
  const users = Array.from({ length: 24 }, (_, at) => `u${at}@example.com`);
  await addUsers(...users, "last@example.com");
  for (const email of users) await requestMail(email, "127.0.84.1");
  expect((await requestMail("last@example.com", "127.0.85.1")).status).toBe(200);
  expect((await fixture.mailTo("last@example.com")).code).toMatch(/^\d{6}$/);
});

test("a browser that signed in before gets a mail after others used up the limits of address and app", async () => {
  await fixture.restart({ mailsPerHour: 24 });
  const from = "127.0.86.1";
  const browser = fixture.browser(from);
  const codePage = await requestMail("owner@example.com", from, browser);
  const { code } = await fixture.mailTo("owner@example.com");
  expect((await browser.submit(codePage, { code }, { stopAt: fixture.callback })).url).toContain("code=");
  await passTwoMinutes();
  await addUsers(...Array.from({ length: 40 }, (_, at) => `v${at}@example.com`));
  for (let at = 0; at < 12; at += 1) await requestMail("owner@example.com", `127.0.87.${at + 1}`);
  let refusedStatus = 0;
  for (let at = 0; at < 40 && refusedStatus === 0; at += 1) {
    const { status } = await requestMail(`v${at}@example.com`, `127.0.88.${at + 1}`);
    if (status !== 200) refusedStatus = status;
  }
  expect(refusedStatus).toBe(429);
  // Another browser at the same source has no part of this browser's limit.
  expect((await requestMail("owner@example.com", from)).status).toBe(429);
  const before = mailsTo("owner@example.com");
  const secondRequest = await requestMail("owner@example.com", from, browser);
  const mail = await fixture.mailTo("owner@example.com", before + 1);
  expect((await browser.submit(secondRequest, { code: mail.code }, { stopAt: fixture.callback })).url).toContain(
    "code=",
  );
});

test("a browser's share is that of the user who signed in", async () => {
  await fixture.restart({ mailsPerHour: 24 });
  await addUsers("other@example.com");
  const browser = fixture.browser("127.0.89.1");
  const codePage = await requestMail("mallory@example.com", "127.0.89.1", browser);
  const { code } = await fixture.mailTo("mallory@example.com");
  await browser.submit(codePage, { code }, { stopAt: fixture.callback });
  await requestMail("other@example.com", "127.0.89.1", browser);
  await fixture.mailTo("other@example.com");
  expect(await sourcesOf("other@example.com")).toEqual(["127.0.89.1"]);
});

/** All responses that a browser gets for a sign-in with wrong codes and a second mail request. */
async function observedBy(from: string, email: string, pass: () => Promise<void>): Promise<unknown[]> {
  const browser = fixture.browser(from);
  const observed: unknown[] = [];
  const observe = (page: Page) => {
    const cookies = [...browser.cookies].map(([name, value]) => [name.slice(0, 14), value.length]);
    const text = page.text
      .replaceAll(email, "EMAIL")
      .replaceAll(/sign-in\/[\w-]{16}/g, "sign-in/ID")
      .replaceAll(/(nonce[-=]"?)[\w+/=-]+/g, "$1");
    observed.push([page.status, text, cookies]);
    return page;
  };
  let page = observe(await requestMail(email, from, browser));
  const [path] = /\/sign-in\/[\w-]{16}/.exec(page.url) ?? [];
  for (let tries = 0; tries < 2; tries += 1) page = observe(await browser.submit(page, { code: "000000" }));
  await pass();
  page = observe(await browser.submit(await browser.get(`${fixture.url}${path}`), { email }));
  for (let tries = 0; tries < 5; tries += 1) page = observe(await browser.submit(page, { code: "000000" }));
  return observed;
}

test.each([{ signUpOpen: false }, { signUpOpen: true }])(
  "wrong codes and a second mail do not reveal whether an address has a user ($signUpOpen)",
  async ({ signUpOpen }) => {
    await fixture.restart({ mailsPerHour: 600, signUpOpen });
    await addUsers("user1@example.com");
    const waiting: (() => void)[] = [];
    const passTogether = () =>
      new Promise<void>((resolve, reject) => {
        waiting.push(resolve);
        if (waiting.length === 2) passTwoMinutes({ signUpOpen }).then(() => waiting.forEach((go) => go()), reject);
      });
    // With open sign-up, a source of many unknown addresses gets no more mails.
    if (signUpOpen)
      await fixture.rows(
        `INSERT INTO _mdb_auth.login_tokens (id, email, interaction_hash, source, is_known, is_owed, expires_at)
         SELECT gen_random_uuid(), n || '@burn.example', sha256(n::text::bytea), '127.0.91.1', false, true, now()
         FROM generate_series(1, 30) AS n`,
      );
    const [withUser, withoutUser] = await Promise.all([
      observedBy("127.0.91.1", "user1@example.com", passTogether),
      observedBy("127.0.91.1", "none1@example.com", passTogether),
    ]);
    expect(mailsTo("user1@example.com")).toBeGreaterThan(0);
    expect(mailsTo("none1@example.com")).toBe(0);
    expect(withoutUser).toEqual(withUser);
  },
);

test("of a hundred concurrent guesses at the token endpoint fifty are checked", async () => {
  await fixture.rows("TRUNCATE _mdb_auth.events");
  await fixture.restart();
  const dispatcher = fixture.agent("127.0.92.1");
  const guess = (at: number) =>
    fixture.post(
      "/token",
      { client_id: fixture.appId, grant_type: "refresh_token", refresh_token: `guess${at}` },
      { dispatcher },
    );
  const responses = await Promise.all(Array.from({ length: 100 }, (_, at) => guess(at)));
  expect(responses.filter(({ status }) => status === 400)).toHaveLength(50);
  expect(responses.filter(({ status }) => status === 429)).toHaveLength(50);
  const [row] = await fixture.rows<{ count: number }>(
    "SELECT count(*)::int AS count FROM _mdb_auth.events WHERE type = 'token.refused'",
  );
  expect(row?.count).toBe(50);
});
