import { randomUUID } from "node:crypto";
import { Secret, TOTP } from "otpauth";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countMails } from "../../issuer/src/sign-in/mail-limits.ts";
import { connectPostgresql } from "@holdfast/testing/engines/engine-clients.ts";
import type { Browser } from "@holdfast/testing/network/browser.ts";
import {
  type IssuerProcess,
  issuerRole,
  startIssuerProcess,
  verifier,
} from "@holdfast/testing/servers/issuer-process.ts";

/** Floods of each public form of an issuer, and the rows that they leave. */
let fixture: IssuerProcess;
/** Rows of an hour of a flood, inserted by statements that end within their limit on a busy machine too. */
const filled = 600_000;
const filledAtOnce = 50_000;

beforeAll(async () => {
  fixture = await startIssuerProcess({ mailsPerHour: 40 }, { HOLDFAST_TRUSTED_PROXIES: "127.0.46.0/24" });
});
afterAll(() => fixture?.remove());

const count = async (table: string, where = "true") => {
  const [row] = await fixture.rows<{ count: number }>(
    `SELECT count(*)::int AS count FROM _mdb_auth.${table} WHERE ${where}`,
  );
  return row?.count ?? -1;
};

interface Plan {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

/** Rows that all steps of a plan read. */
function rowsRead(plan: Plan): number {
  const scanned = (plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)) * plan["Actual Loops"];
  return (plan.Plans ?? []).reduce((sum, each) => sum + rowsRead(each), scanned);
}

/** Runs `work` many times, a bounded number of times concurrently. */
async function flood<T>(times: number, work: (at: number) => Promise<T>, atOnce = 30): Promise<T[]> {
  const done: T[] = [];
  let at = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (at < times) done.push(await work((at += 1)));
    }),
  );
  return done;
}

async function signIn(address: string, from: string, browser: Browser = fixture.browser(from), more = {}) {
  const page = await fixture.begin(browser, more);
  const before = fixture.mail.received.filter(({ to }) => to.includes(address)).length;
  const codePage = await browser.submit(page, { email: address });
  const { code } = await fixture.mailTo(address, before + 1);
  return browser.submit(codePage, { code }, { stopAt: fixture.callback });
}

async function tokensOf(url: string, client: Readonly<Record<string, string>> = { client_id: fixture.appId }) {
  const code = new URL(url).searchParams.get("code") ?? "";
  const form = {
    ...client,
    grant_type: "authorization_code",
    code,
    code_verifier: verifier,
    redirect_uri: fixture.callback,
  };
  const { status, text } = await fixture.post("/token", form);
  expect([status, text]).toEqual([200, expect.any(String)]);
  return JSON.parse(text) as { refresh_token: string };
}

test("sign-in requests of the greatest length leave a browser that every page accepts", async () => {
  const browser = fixture.browser("127.0.42.1");
  for (let times = 0; times < 8; times += 1) {
    const page = await fixture.begin(browser, { state: "s".repeat(1_024), nonce: "n".repeat(512) });
    expect(page.text).toContain("E-mail address");
  }
  const bytes = [...browser.cookies].reduce((sum, [name, value]) => sum + name.length + value.length + 3, 0);
  expect(bytes).toBeLessThan(8_192);
  expect((await browser.get(`${fixture.url}/jwks.json`)).status).toBe(200);
});

test("a second factor checks five of forty concurrent guesses", async () => {
  const browser = fixture.browser("127.0.42.2");
  await signIn("hugo@example.com", "127.0.42.2", browser);
  const setUp = await browser.post(`${fixture.url}/account/second-factor`);
  const secret = /<code>([A-Z2-7]+)<\/code>/.exec(setUp.text)?.[1] ?? "";
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  const confirmed = await browser.submit(setUp, { code: totp.generate() });
  const recovery = [...confirmed.text.matchAll(/<code>([0-9a-f]{16})<\/code>/g)].map(([, code = ""]) => code);
  expect(recovery).toHaveLength(10);
  await fixture.rows("UPDATE _mdb_auth.login_tokens SET created_at = created_at - interval '2 minutes'");
  await fixture.restart();
  const second = await signIn("hugo@example.com", "127.0.42.2", browser, { prompt: "login" });
  expect(second.text).toContain("Second factor");
  const path = new URL(second.url).pathname;
  const dispatcher = fixture.agent("127.0.42.2");
  const options = { dispatcher, cookies: browser.cookies };
  await flood(
    40,
    (at) => fixture.post(path, { code: at % 2 === 0 ? String(100_000 + at) : `${at}`.repeat(8) }, options),
    40,
  );
  const [row] = await fixture.rows<{ failures: number }>("SELECT failures FROM _mdb_auth.mfa_totp");
  expect(row?.failures).toBe(5);
  const late = await fixture.post(path, { code: recovery[0] ?? "" }, options);
  expect(late.status).toBe(400);
  expect(await count("mfa_recovery_codes", "used_at IS NOT NULL")).toBe(0);
});

test("a mailed code has five concurrent guesses", async () => {
  const browser = fixture.browser("127.0.42.3");
  const codePage = await browser.submit(await fixture.begin(browser), { email: "carl@example.com" });
  const { code } = await fixture.mailTo("carl@example.com");
  const wrong = code === "000000" ? "000001" : "000000";
  const path = new URL(codePage.url).pathname;
  const options = { dispatcher: fixture.agent("127.0.42.3"), cookies: new Map(browser.cookies) };
  await flood(40, () => fixture.post(path, { code: wrong }, options), 40);
  expect(await count("login_tokens", "email = 'carl@example.com' AND tries = 5")).toBe(1);
  expect((await fixture.post(path, { code }, options)).status).toBe(400);
});

test("a flood of addresses always gets the same page, and leaves only rows of mails", async () => {
  const from = "127.0.42.4";
  const browser = fixture.browser(from);
  const page = await fixture.begin(browser);
  const path = new URL(page.url).pathname;
  const options = { dispatcher: fixture.agent(from), cookies: browser.cookies };
  const before = await count("login_tokens");
  const responses = await flood(400, (at) => fixture.post(path, { email: `stranger${at}@example.com` }, options));
  const statuses = [...new Set(responses.map(({ status }) => status))].toSorted();
  expect(statuses).toEqual([303, 429]);
  // A source may have 30 mails sent to unknown addresses in ten minutes.
  expect((await count("login_tokens")) - before).toBeLessThanOrEqual(30);
});

test("floods of unknown addresses use up no mail of a user", async () => {
  await flood(60, async (at) => {
    const from = `127.0.43.${at}`;
    const browser = fixture.browser(from);
    return browser.submit(await fixture.begin(browser), { email: `many${at}@example.com` });
  });
  expect(await count("login_tokens", "NOT is_known")).toBeLessThanOrEqual(20);
  const browser = fixture.browser("127.0.42.6");
  await fixture.rows("INSERT INTO _mdb_auth.users (id, email) VALUES ($1, 'dora@example.com')", [randomUUID()]);
  const codePage = await browser.submit(await fixture.begin(browser), { email: "dora@example.com" });
  expect(codePage.status).toBe(200);
  expect((await fixture.mailTo("dora@example.com")).code).toMatch(/^\d{6}$/);
});

test("refreshes continue while every form is flooded over a large database", async () => {
  await fixture.restart({ mailsPerHour: 10_000 });
  const tokens = await tokensOf((await signIn("edna@example.com", "127.0.42.7")).url);
  for (let at = 0; at < filled; at += filledAtOnce)
    await fixture.rows(
      `INSERT INTO _mdb_auth.login_tokens (id, email, interaction_hash, source, is_known, is_owed, expires_at)
       SELECT gen_random_uuid(), 'filled' || n || '@example.com', sha256(n::text::bytea), '10.0.0.1', false, n % 2 = 0,
         now() + interval '15 minutes' FROM generate_series($1::int, $2::int) AS n`,
      [at + 1, at + filledAtOnce],
    );
  // Requests for mails wait for this lock, and refreshes do not.
  const holder = await connectPostgresql(fixture.machine, { user: "app_user", password: "secret" });
  await holder.query("BEGIN");
  await holder.query("SELECT pg_advisory_xact_lock(hashtextextended('holdfast mails of sign-ins', 0))");
  const waiting = Array.from({ length: 12 }, async (_, at) => {
    const browser = fixture.browser(`127.0.44.${at + 1}`);
    const page = await fixture.begin(browser);
    return fixture.post(
      new URL(page.url).pathname,
      { email: `waits${at}@example.com` },
      { dispatcher: fixture.agent(`127.0.44.${at + 1}`), cookies: browser.cookies },
    );
  });
  let token = tokens.refresh_token;
  for (let times = 0; times < 20; times += 1) {
    const { status, text } = await fixture.post("/token", {
      client_id: fixture.appId,
      grant_type: "refresh_token",
      refresh_token: token,
    });
    expect([status, text]).toEqual([200, expect.any(String)]);
    token = (JSON.parse(text) as { refresh_token: string }).refresh_token;
  }
  const [locks] = await fixture.rows<{ waiting: number }>(
    "SELECT count(*)::int AS waiting FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
  );
  expect(locks?.waiting).toBeGreaterThan(0);
  await holder.query("COMMIT");
  await holder.end();
  const responses = await Promise.all(waiting);
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 303));
  const issuer = await connectPostgresql(fixture.machine, { user: issuerRole, password: "issuer" });
  await issuer.query("SET enable_seqscan = off; SET enable_bitmapscan = off");
  const explained = await issuer.query<{ "QUERY PLAN": { Plan: Plan }[] }>(
    `EXPLAIN (ANALYZE, FORMAT JSON) ${countMails}`,
    ["filled7@example.com", "10.0.0.1", 5_000, 10_000, true],
  );
  await issuer.end();
  const plan = explained.rows[0]?.["QUERY PLAN"][0]?.Plan;
  expect(plan && rowsRead(plan)).toBeLessThan(50_000);
  const some = `SELECT id FROM _mdb_auth.login_tokens WHERE email LIKE 'filled%' LIMIT ${filledAtOnce}`;
  for (let at = 0; at < filled; at += filledAtOnce)
    await fixture.rows(`DELETE FROM _mdb_auth.login_tokens WHERE id = ANY (ARRAY (${some}))`);
  expect(await count("login_tokens", "email LIKE 'filled%'")).toBe(0);
});

test("clients behind a trusted proxy have separate limits, and headers of other peers are ignored", async () => {
  const guess = { client_id: fixture.appId, grant_type: "refresh_token", refresh_token: "guess" };
  const guessAs = (from: string, client: string) =>
    fixture.post("/token", guess, { dispatcher: fixture.agent(from), headers: { "x-forwarded-for": client } });
  await flood(50, () => guessAs("127.0.46.1", "1.1.1.1, 203.0.113.7"));
  expect((await guessAs("127.0.46.1", "203.0.113.7")).status).toBe(429);
  // The client's own entries of the header are to the left of the proxy's.
  expect((await guessAs("127.0.46.2", "1.1.1.1, 203.0.113.7, 127.0.46.1")).status).toBe(429);
  expect((await guessAs("127.0.46.1", "203.0.113.8")).status).toBe(400);
  await flood(60, (at) => guessAs("127.0.47.1", `203.0.114.${at}`));
  expect((await guessAs("127.0.47.1", "203.0.114.200")).status).toBe(429);
  expect(await count("events", "ip LIKE '203.0.114.%'")).toBe(0);
});

test("the owner of the database ends no session of an issuer", async () => {
  expect((await fixture.begin(fixture.browser("127.0.42.9"))).text).toContain("E-mail address");
  await signIn("hans@example.com", "127.0.42.9");
  const owner = await connectPostgresql(fixture.machine, { user: "app_user", password: "secret" });
  const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${issuerRole}'`;
  await expect(owner.query(end)).rejects.toThrow("permission denied");
  await owner.end();
});

test("failures at the token endpoint leave bounded rows, and delay no client that proves its secret", async () => {
  const guess = { client_id: fixture.appId, grant_type: "refresh_token", refresh_token: "guess" };
  const before = await count("events", "type = 'token.refused'");
  const responses = await flood(400, async (at) => {
    const from = `127.0.45.${(at % 20) + 1}`;
    return fixture.post("/token", guess, { dispatcher: fixture.agent(from) });
  });
  expect(responses.every(({ status }) => status === 400 || status === 429)).toBe(true);
  expect((await count("events", "type = 'token.refused'")) - before).toBeLessThanOrEqual(220);
  const from = "127.0.42.8";
  const dispatcher = fixture.agent(from);
  const web = { client_id: "web", client_secret: fixture.clientSecret };
  const signedIn = await signIn("fred@example.com", from, fixture.browser(from), { client_id: "web" });
  const tokens = await tokensOf(signedIn.url, web);
  const dead = { ...web, grant_type: "refresh_token", refresh_token: tokens.refresh_token };
  await fixture.post("/revoke", { ...web, token: tokens.refresh_token }, { dispatcher });
  const failed = await flood(80, () => fixture.post("/token", dead, { dispatcher }));
  expect(failed.some(({ status }) => status === 400)).toBe(true);
  // A source of failed attempts is delayed, and a client that proves its secret there is not.
  await flood(60, () => fixture.post("/token", guess, { dispatcher }));
  expect((await fixture.post("/token", guess, { dispatcher })).status).toBe(429);
  const browser = fixture.browser(from);
  await fixture.rows("UPDATE _mdb_auth.login_tokens SET created_at = created_at - interval '2 minutes'");
  const secondSignIn = await signIn("gina@example.com", from, browser, { client_id: "web" });
  const code = new URL(secondSignIn.url).searchParams.get("code") ?? "";
  const form = {
    ...web,
    grant_type: "authorization_code",
    code,
    code_verifier: verifier,
    redirect_uri: fixture.callback,
  };
  expect((await fixture.post("/token", form, { dispatcher })).status).toBe(200);
});
