import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import type { LookupOptions } from "node:dns";
import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createPostgresqlDriver } from "@holdfast/agent/engines/postgresql/driver.ts";
import { withSession } from "@holdfast/agent/engines/postgresql/session.ts";
import { exportKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import { newSigningKey } from "@holdfast/controller/app/auth/signing-keys.ts";
import { pemOf } from "@holdfast/controller/kernel/pki/authority-record.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import {
  AppBatchSchema,
  type AppSignIn,
  AppSignInSchema,
  type ClientSchema,
} from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { Agent, request } from "undici";
import { openStateFile } from "@holdfast/issuer/state-file.ts";
import { createTestAuthority } from "../controller/test-authority.ts";
import { scramVerifier } from "../engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "../engines/engine-machine.ts";
import { type Browser, createBrowser, type Page } from "../network/browser.ts";
import { freePorts } from "../platform/free-ports.ts";
import type { Platform } from "../platform/platform.ts";
import { waitUntil } from "../wait-until.ts";
import { type MailServer, startMailServer } from "./mail-server.ts";

/** An issuer process without controllers, on a real PostgreSQL: it serves the one app of its state on disk. */
export interface IssuerProcess {
  readonly url: string;
  readonly appId: string;
  readonly callback: string;
  /** Secret of the confidential client `web`. */
  readonly clientSecret: string;
  readonly machine: EngineMachine;
  readonly mail: MailServer;
  /** Rows of a query as the superuser, in the database of the users. */
  rows<R = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<R[]>;
  /** Connections from this address. */
  agent(from?: string): Agent;
  browser(from?: string): Browser;
  /** The page of /authorize for the app's public client. */
  begin(browser: Browser, more?: Readonly<Record<string, string>>): Promise<Page>;
  /** Sends a form with these cookies; redirects are not followed. */
  post(path: string, form: Readonly<Record<string, string>>, options?: PostOptions): Promise<Answered>;
  /** The newest mail to an address, once `count` of them arrived. */
  mailTo(address: string, count?: number): Promise<{ readonly code: string; readonly link: string }>;
  /** Ends the process and starts it again, with another state of the app. */
  restart(change?: AppChange): Promise<void>;
  output(): string;
  remove(): Promise<void>;
}

/** The settings of the app that tests change. */
type AppChange = Partial<Pick<AppSignIn, "mailsPerHour" | "signUpOpen">>;

interface NewApp extends AppChange {
  /** Clients besides the app's own and `web`. */
  readonly moreClients?: readonly MessageInitShape<typeof ClientSchema>[];
}

export interface PostOptions {
  readonly dispatcher?: Agent;
  readonly cookies?: ReadonlyMap<string, string>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const host = "login.test";
const callback = "https://shop.example/cb";
export const issuerRole = "holdfast_auth_0123456789abcdef";
export const verifier = "v".repeat(43);
const challenge = createHash("sha256").update(verifier).digest("base64url");

/** `environment` extends the process's own variables. */
export async function startIssuerProcess(
  { moreClients = [], ...app }: NewApp = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<IssuerProcess> {
  const appId = randomUUID();
  const directory = mkdtempSync(join(tmpdir(), "issuer-"));
  const identity = join(directory, "identity");
  const [machine, authority, mail, [port = 0], hostKeys, servingKeys] = await Promise.all([
    startEngine(),
    createTestAuthority(),
    startMailServer({ at: { host: "127.0.41.1", port: 2_525 + Math.floor(Math.random() * 400) } }),
    freePorts(1),
    newKeyPair(),
    newKeyPair(),
  ]);
  const url = `https://${host}:${port}`;
  const clientSecret = randomBytes(32).toString("base64url");
  const leafOf = async (name: string, { publicKey }: typeof hostKeys) =>
    pemOf((await authority.issue({ commonName: name, names: [name], publicKey })).der);
  await mkdir(identity, { mode: 0o700 });
  await writeFile(join(identity, "key.pem"), await exportKey(servingKeys.privateKey));
  await writeFile(join(identity, "cert.pem"), await leafOf("localhost", servingKeys));
  await writeFile(join(identity, "ca.pem"), machine.ca);
  await writeFile(
    join(directory, "host-key.json"),
    JSON.stringify({ privateKey: await exportKey(hostKeys.privateKey), request: "" }),
  );
  const key = await newSigningKey((plain) => plain);
  const { address } = machine.instance.spec;
  let served = create(AppSignInSchema, {
    appId,
    version: 1n,
    issuerUrl: url,
    host,
    certificate: await leafOf(host, hostKeys),
    database: {
      name: "defaultdb",
      role: issuerRole,
      password: "issuer",
      address,
      port: machine.instance.spec.port,
      hostname: machine.serverName,
    },
    smtp: {
      host: "127.0.41.1",
      port: mail.port,
      fromAddress: "shop@example.com",
      fromName: "Shop",
      caCertificate: mail.ca,
    },
    theme: { displayName: "Shop", brandColor: "#1f5fbf" },
    signUpOpen: true,
    mailsPerHour: 600,
    secret: randomBytes(32).toString("base64url"),
    keys: [{ kid: key.kid, status: "active", publicJwk: key.publicJwk, privateKey: key.sealedPrivateKey }],
    clients: [
      { clientId: appId, name: "shop", redirectUris: [callback], requirePkce: true },
      {
        clientId: "web",
        name: "web",
        confidential: true,
        secretHash: createHash("sha256").update(clientSecret).digest("hex"),
        redirectUris: [callback],
        requirePkce: true,
      },
      ...moreClients,
    ],
    ...app,
  });
  let child: ChildProcess | undefined;
  let output = "";
  const agents: Agent[] = [];
  const browsers: Browser[] = [];

  async function start(): Promise<void> {
    const file = await openStateFile(directory);
    const addresses = { listeners: [], loopbackBlock: "127.254", machineAddresses: [], allowed: ["127.0.0.0/8"] };
    await file.write(create(AppBatchSchema, { reset: true, synced: true, apps: [served], own: addresses }));
    const process_ = spawn(process.execPath, [join(import.meta.dirname, "../../../issuer/src/main.ts")], {
      env: {
        ...process.env,
        HOLDFAST_INSTALLATION_ID: "test",
        HOLDFAST_CONTROLLERS: "127.0.0.1:9",
        HOLDFAST_ISSUER_LISTEN: `127.0.0.1:${port}`,
        HOLDFAST_ISSUER_DIR: directory,
        HOLDFAST_ISSUER_IDENTITY_DIR: identity,
        ...environment,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child = process_;
    for (const stream of [process_.stdout, process_.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    await waitUntil("the issuer serves", () => output.includes("issuer ready"), { describe: () => output });
  }

  async function stop(): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child?.once("close", resolve));
    child.kill("SIGKILL");
    await ended;
    output = "";
  }

  const fixture: IssuerProcess = {
    url,
    appId,
    callback,
    clientSecret,
    machine,
    mail,
    rows: (sql, values) =>
      withSession(machine.instance, machine.signal, (session) => session.rows(sql, values), { database: "defaultdb" }),
    agent(from) {
      const created = new Agent({
        ...(from !== undefined && { localAddress: from }),
        connect: { ca: authority.trustBundle, lookup: lookUpHere },
      });
      agents.push(created);
      return created;
    },
    browser(from) {
      const platform = { ca: authority.trustBundle, admin: {} as Platform["admin"] };
      const created = createBrowser(platform, { names: { [host]: "127.0.0.1" }, ...(from !== undefined && { from }) });
      browsers.push(created);
      return created;
    },
    begin(browser, more = {}) {
      const parameters = new URLSearchParams({
        client_id: appId,
        redirect_uri: callback,
        response_type: "code",
        scope: "openid email offline_access",
        code_challenge: challenge,
        code_challenge_method: "S256",
        nonce: "n",
        state: "s",
        ...more,
      });
      return browser.get(`${url}/authorize?${parameters.toString()}`, { stopAt: callback });
    },
    async post(path, form, { dispatcher = fixture.agent(), cookies = new Map(), headers = {} } = {}) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await request(`${url}${path}`, {
        dispatcher,
        method: "POST",
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          origin: url,
          ...(cookie !== "" && { cookie }),
          ...headers,
        },
        body: new URLSearchParams(form).toString(),
      });
      return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
    },
    async mailTo(to, count = 1) {
      const find = () => {
        const all = mail.received.filter((each) => each.to.includes(to));
        return all.length >= count ? all.at(-1) : undefined;
      };
      const found = await waitUntil(`mail ${count} to ${to}`, find, { withinMs: 30_000, describe: () => output });
      const text = found.email.text ?? "";
      return { code: /\b(\d{6})\b/.exec(text)?.[1] ?? "", link: /https:\S+\/link\?\S+/.exec(text)?.[0] ?? "" };
    },
    async restart(change = {}) {
      await stop();
      served = create(AppSignInSchema, { ...served, ...change });
      await start();
    },
    output: () => output,
    async remove() {
      await Promise.all([...browsers, ...agents].map((each) => each.close()));
      await stop();
      await mail.close();
      await machine.remove();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  await start();
  return fixture;
}

/** An engine whose database has the schema of the app's users, as an agent creates it. */
async function startEngine(): Promise<EngineMachine> {
  const verifierOf = scramVerifier("issuer");
  const machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", "17", {
    users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier("secret") })],
    platformAccess: [
      {
        $typeName: "holdfast.agent.v1.PlatformAccess",
        role: issuerRole,
        database: "defaultdb",
        from: ["127.0.0.1/32"],
      },
    ],
  });
  await machine.bringUp();
  const database = { database: "defaultdb", role: issuerRole, verifier: verifierOf };
  await machine.driver.identity?.prepare(machine.instance, database, machine.signal);
  return machine;
}

const lookUpHere = (
  _name: string,
  options: LookupOptions,
  callback_: (error: null, address: string | { address: string; family: number }[], family?: number) => void,
) => {
  if (options.all === true) callback_(null, [{ address: "127.0.0.1", family: 4 }]);
  else callback_(null, "127.0.0.1", 4);
};
