import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type CommandLine,
  createCommandLine,
  type CommandResult,
  type RunOptions,
} from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { acceptedBy } from "@holdfast/testing/servers/webhook-verifiers.ts";
import { startWebhookReceiver, type WebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";

interface Options extends RunOptions {
  readonly asProcess?: boolean;
}

type Case = readonly [line: string, code: number, message: RegExp, environment?: Readonly<Record<string, string>>];

const ansi = "\u001b[";

describe("holdfast, the command", { timeout: 120_000 }, () => {
  let platform: Platform;
  let receiver: WebhookReceiver;
  let shell: CommandLine;
  /** Output of all commands so far. */
  const printed: string[] = [];

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    receiver = await startWebhookReceiver();
    shell = createCommandLine({});
    // As in a checkout after npm start: nothing else configures the platform's address.
    symlinkSync(platform.directory, join(shell.home, ".holdfast"));
  });
  afterAll(async () => {
    shell?.remove();
    await receiver?.close();
    await platform?.remove();
  });

  const holdfast = async (line: string, { asProcess = false, ...options }: Options = {}): Promise<CommandResult> => {
    const ran = await (asProcess ? shell.run : shell.runHere)(wordsOf(line), options);
    printed.push(ran.stdout, ran.stderr);
    return ran;
  };
  /** The JSON output of a command that must not fail. */
  const jsonOf = async <T>(line: string, options?: Options): Promise<T> => {
    const ran = await holdfast(`--output json ${line}`, options);
    expect(ran, line).toMatchObject({ code: 0 });
    return JSON.parse(ran.stdout) as T;
  };

  const jsonLines = async (line: string, options?: Options): Promise<unknown[]> => {
    const { stdout } = await holdfast(line, options);
    return stdout
      .trimEnd()
      .split("\n")
      .map((each) => JSON.parse(each) as unknown);
  };

  /** Runs the command on a terminal, and answers each prompt once it appears. */
  const runOnTerminal = async (
    line: string,
    environment: RunOptions["environment"],
    responses: Readonly<Record<string, string>>,
  ) => {
    const running = shell.start(wordsOf(line), { environment: environment ?? {}, onTerminal: true });
    for (const [question, typed] of Object.entries(responses)) {
      await waitUntil(question, () => running.written().includes(question));
      running.type(`${typed}\n`);
    }
    const ran = await running.ended;
    printed.push(ran.stdout);
    return ran;
  };

  let organization: { HOLDFAST_ORGANIZATION: string };
  let key: { id: string; secret: string };

  it("takes a new user from a login to a signed event", async () => {
    const acme = await jsonOf<{ id: string }>("orgs create acme", { asProcess: true });
    organization = { HOLDFAST_ORGANIZATION: acme.id };
    const inAcme = { environment: organization };
    const inShell = { ...inAcme, asProcess: true };
    key = await jsonOf("keys create dashboard --scope services:read", inAcme);
    const webhook = await jsonOf<{ id: string; secret: string }>(
      `webhooks create ${receiver.url} --event service.running`,
      inAcme,
    );
    const created = await holdfast("services create demo --type postgresql --allow 127.0.0.0/8 --wait", inShell);
    expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nstatus +Running\n/) });
    // Steps are printed on standard error, so that results can be piped.
    expect(created.stderr).toMatch(/demo: \w+ \d+%/);

    const delivery = await waitUntil("service.running arrives", () =>
      receiver.received.find(({ body }) => body.includes("service.running")),
    );
    expect(JSON.parse(delivery.body)).toMatchObject({ data: { service_name: "demo" } });
    expect(await acceptedBy(delivery, webhook.secret)).toContain("standardwebhooks");
    const attempts = await waitUntil("the attempt is recorded, after its response", async () => {
      const found = await jsonOf<{ response_status: number }[]>(`webhooks deliveries ${webhook.id}`, inAcme);
      return found.length > 0 && found;
    });
    expect(attempts).toMatchObject([{ event_type: "service.running", response_status: 200 }]);

    const loggedIn = await holdfast(`login --api-key ${key.id} --profile reader`, {
      input: `${key.secret}\n`,
      asProcess: true,
    });
    expect(loggedIn).toMatchObject({ code: 0, stdout: "" });
    expect((await holdfast("services list --profile reader")).stdout).toMatch(/\ndemo +Running /);
    expect(await holdfast("services stop demo --profile reader")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("services:write"),
    });
    expect((await holdfast("profile remove reader --yes")).code).toBe(0);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  const codes: readonly Case[] = [
    ["services get demo",                                    0,   /^$/],
    ["services create Bad --type oracle",                    2,   /name: .*\n.*database_type: /],
    ["services create x",                                    2,   /--type/],
    ["services delete demo",                                 2,   /--yes/],
    ["nonsense",                                             2,   /unknown command/],
    ["services list",                                        2,   /there is no installation/,  { HOLDFAST_DATA: "/none" }],
    ["services list",                                        3,   /unauthenticated/,           { HOLDFAST_TOKEN: "hft_wrong" }],
    ["services get none",                                    4,   /there is no service none/],
    ["webhooks get 01a1ff48-f67d-7258-8cdd-2467cfb7d401",    4,   /webhook_not_found/],
    ["services create demo --type postgresql",               5,   /name_taken/],
    ["services wait demo --for Stopped --timeout 0",         6,   /not Stopped within 0 s/],
    ["services list",                                        1,   /does not respond/,           { HOLDFAST_BASE_URL: "https://127.0.0.1:1", HOLDFAST_TOKEN: "hft_x" }],
  ];
  const named = codes.map(([line, code, message, environment]) => ({ line, code, message, environment }));
  it.each(named)("$line ends with $code", async ({ line, code, message, environment }) => {
    const ran = await holdfast(line, { environment: { ...organization, ...environment } });
    expect(ran.stderr).toMatch(message);
    expect(ran.code).toBe(code);
  });

  it("completes words that only the platform has", async () => {
    const suggested = async (line: string) =>
      (await holdfast(`complete -- ${line} x`, { environment: organization })).stdout;
    expect(await suggested("services create new --type")).toMatch(/^postgresql\t/m);
    expect(await suggested("users password demo")).toMatch(/^app_user\t/m);
    expect(await suggested("databases delete demo")).toMatch(/^defaultdb\t/m);
    expect(await suggested("keys delete")).toContain(`${key.id}\tdashboard\n`);
  });

  it("shows the newest events and log lines, oldest first, and follows from there", async () => {
    const inAcme = { environment: organization };
    const all = await jsonLines("events --since 1d --output json", inAcme);
    expect(await jsonLines("events -n 2 --output json", inAcme)).toEqual(all.slice(-2));
    const log = (await holdfast("services logs demo --since 1d", inAcme)).stdout.trimEnd().split("\n");
    const newest = (await holdfast("services logs demo -n 3", inAcme)).stdout.trimEnd().split("\n");
    // The engine may have written more lines in between.
    expect(log).toContain(newest[0]);
    expect(newest).toHaveLength(3);
    expect(newest[0]).toMatch(/^\S+Z demo-\w+-1 /);
    const found = (await holdfast("services logs demo --grep READY --node " + newest[0]?.split(" ")[1], inAcme)).stdout;
    expect(found).toMatch(/ready to accept connections/);

    const following = shell.start(wordsOf("events --follow -n 1 --output json"), { environment: organization });
    await waitUntil("the newest event arrives", () => following.written().includes("\n"));
    expect((await holdfast("services restart demo --wait", inAcme)).code).toBe(0);
    await waitUntil("further events arrive", () => following.written().includes("service.running"));
    following.child.kill("SIGINT");
    const [first] = (await following.ended).stdout.split("\n");
    expect(JSON.parse(first ?? "")).toEqual(all.at(-1));
  });

  it("exits with 130 when it is interrupted during a wait", async () => {
    const waiting = shell.start(wordsOf("services wait demo --for Stopped"), { environment: organization });
    await waitUntil("it waits", () => waiting.written().includes("demo:"));
    waiting.child.kill("SIGINT");
    expect(await waiting.ended).toMatchObject({
      code: 130,
      stderr: expect.stringMatching(/interrupted; the operation continues.* services wait demo --for Stopped\n$/),
    });

    const following = shell.start(wordsOf("events --follow --output json"), { environment: organization });
    await waitUntil("an event arrives", () => following.written().includes("\n"));
    following.child.kill("SIGINT");
    const { code, stdout } = await following.ended;
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({ event_type: "service.running" });
    expect(code).toBe(130);
  });

  it("has colors and prompts on a terminal alone", async () => {
    expect((await holdfast("services list", { environment: organization, asProcess: true })).stdout).not.toContain(
      ansi,
    );
    const listed = await holdfast("services list", {
      environment: organization,
      onTerminal: true,
      asProcess: true,
    });
    expect(listed.stdout).toContain(`${ansi}32mRunning`);
    const lines = stripVTControlCharacters(listed.stdout).split("\r\n");
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(120);

    const deleting = await runOnTerminal("services delete demo", organization, { "[y/N]": "n" });
    expect(deleting).toMatchObject({ code: 2, stdout: expect.stringContaining("nothing was changed") });
  });

  it("connects with a password that no other user can read, and leaves none of it", async () => {
    const password = (await holdfast("users password demo app_user", { environment: organization })).stdout.trim();
    const check = `\\! tr '\\0' '\\n' < /proc/$PPID/cmdline; tr '\\0' '\\n' < /proc/$PPID/environ; stat -c 'mode %a' "$TMPDIR"/holdfast-*/ "$TMPDIR"/holdfast-*/*`;
    const scopes = ["services:read", "services:secrets"].map((scope) => `--scope ${scope}`).join(" ");
    const key = await jsonOf<{ id: string; secret: string }>(`keys create opener ${scopes}`, {
      environment: organization,
    });
    const ran = await shell.run(["services", "connect", "demo", "--", "-X", "-Atc", "SELECT 6 * 7", "-c", check], {
      environment: { HOLDFAST_API_KEY_ID: key.id, HOLDFAST_API_KEY_SECRET: key.secret },
    });
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringMatching(/^42\n/) });
    expect(ran.stdout).toContain("sslmode=verify-full");
    expect(ran.stdout.match(/mode \d+/g)).toEqual(["mode 700", "mode 600", "mode 600"]);
    for (const secret of [password, key.secret]) expect(ran.stdout + ran.stderr).not.toContain(secret);
    expect(readdirSync(shell.temporary)).toEqual([]);
    const failed = await shell.run(["services", "connect", "demo", "--", "-Xc", "SELECT 1 / 0"], {
      environment: organization,
    });
    expect(failed.code).toBe(1);

    // psql waits for a writer of the pipe.
    const pipe = join(shell.home, "statements.sql");
    execFileSync("mkfifo", [pipe]);
    const waiting = shell.start(["services", "connect", "demo", "--", "-Xf", pipe], { environment: organization });
    await waitUntil("it is connected", () => readdirSync(shell.temporary).length > 0);
    waiting.child.kill("SIGTERM");
    expect((await waiting.ended).code).toBe(130);
    expect(readdirSync(shell.temporary)).toEqual([]);
  });

  it("signs a user in on the terminal, stores the session readable for them alone, and ends it", async () => {
    const invited = await jsonOf<{ setup_token: string }>("members invite anna --role developer", {
      environment: organization,
    });
    const { base_url: baseUrl, ca_file: caFile } = platform.admin;
    const home = { XDG_CONFIG_HOME: join(shell.home, "people") };
    const away = { ...home, HOLDFAST_BASE_URL: baseUrl, HOLDFAST_CA_FILE: caFile };
    const password = "correct horse battery";
    const login = (line: string, input: string) =>
      holdfast(`login --username anna --profile anna ${line}`, { input, environment: away, asProcess: true });
    expect((await login("--set-up", `${invited.setup_token}\n${password}\n`)).code).toBe(0);
    const file = join(home.XDG_CONFIG_HOME, "holdfast", "profiles.json");
    expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
    const { token } = JSON.parse(readFileSync(file, "utf8")).profiles.anna as { token: string };
    expect(readFileSync(file, "utf8")).not.toContain(password);

    // The profile now has all settings.
    const anna = { environment: { ...home, HOLDFAST_PROFILE: "anna" } };
    expect((await holdfast("services list", anna)).stdout).toMatch(/\ndemo /);
    expect(await holdfast("profile show", anna)).toMatchObject({
      stdout: expect.stringMatching(/\nwho +anna\nsigned_in +true\n/),
    });
    const second = `${password} 2`;
    const changing = await runOnTerminal("password", anna.environment, {
      "Current password:": password,
      "New password:": second,
      "New password again:": second,
    });
    expect(changing.code).toBe(0);
    expect(changing.stdout).not.toContain(password);

    expect((await login("", `${password}\n`)).code).toBe(3);
    expect((await login("", `${password} 2\n`)).code).toBe(0);
    expect((await holdfast("logout", anna)).code).toBe(0);
    expect((await holdfast("services list", anna)).code).toBe(3);
    const boss = { ...away, HOLDFAST_PROFILE: "boss" };
    const operator = platform.admin;
    const choosing = await runOnTerminal("login", boss, {
      "User name:": operator.username,
      "Password:": operator.password,
      "(id or name):": "acme",
    });
    expect(choosing).toMatchObject({ code: 0, stdout: expect.stringContaining("signed in as admin in ") });
    expect((await holdfast("services list", { environment: boss })).stdout).toMatch(/\ndemo /);
    for (const text of printed) expect(text).not.toContain(token);
  });

  it("stores profiles, lists them without their secrets, uses and deletes them", async () => {
    const away = { XDG_CONFIG_HOME: join(shell.home, "profiles") };
    const { base_url: baseUrl, ca_file: caFile } = platform.admin;
    const remote = { environment: { ...away, HOLDFAST_BASE_URL: baseUrl, HOLDFAST_CA_FILE: caFile } };
    const keep = (name: string, secret: string) =>
      holdfast(`login --api-key ${key.id} --profile ${name}`, { ...remote, input: secret });
    expect((await keep("one", key.secret)).code).toBe(0);
    expect((await keep("two", key.secret)).code).toBe(0);
    expect((await keep("three", "a guess")).code).toBe(3);
    const local = { environment: away };
    expect((await holdfast("profile use one", local)).code).toBe(0);
    expect(await jsonOf("profile list", local)).toMatchObject([
      { in_use: "*", name: "one", who: key.id },
      { in_use: "", name: "two" },
    ]);
    expect((await holdfast("profile show two", local)).stdout).toContain(baseUrl);
    expect((await holdfast("services get demo", local)).code).toBe(0);
    expect((await holdfast("profile remove one", local)).code).toBe(2);
    for (const name of ["one", "two"]) expect((await holdfast(`profile remove ${name} --yes`, local)).code).toBe(0);
    expect(await holdfast("logout", local)).toMatchObject({ code: 3, stderr: expect.stringContaining("no profile") });
  });

  it("creates an operator, and leaves the host's own password where the host reads it", async () => {
    const operator = await jsonOf<{ username: string; password: string }>("admin operator create olga");
    const olga = { HOLDFAST_API_KEY_ID: operator.username, HOLDFAST_API_KEY_SECRET: operator.password };
    expect(await jsonOf("admin machines", { environment: olga })).toContainEqual(
      expect.objectContaining({ ownerKind: "managed-service" }),
    );
    expect(await holdfast("admin operator rotate admin --yes")).toMatchObject({ code: 0, stdout: "" });
    expect((await holdfast("admin controllers")).code).toBe(0);
    expect((await holdfast("admin operator revoke olga --yes")).code).toBe(0);
    expect((await holdfast("admin machines", { environment: olga })).code).toBe(3);
  });

  it("showed no secret that was not requested", () => {
    const { password, api_key_secret: secret, token } = platform.admin;
    for (const text of printed) for (const hidden of [password, secret, token]) expect(text).not.toContain(hidden);
    expect(printed.filter((text) => text.includes(key.secret))).toHaveLength(1);
  });
});

function wordsOf(line: string): string[] {
  return line.trim().split(/ +/);
}
