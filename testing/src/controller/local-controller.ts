import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "@holdfast/cli/run.ts";
import { type NounGroup, nounGroups } from "@holdfast/cli/nouns.ts";
import { startTestPostgresql, type TestPostgresql } from "../engines/postgresql.ts";
import { freePorts } from "../platform/free-ports.ts";
import { startTestEtcd, type TestEtcd } from "./etcd.ts";

/** etcd, a history and settings for controllers that run in this process, without machines on their host. */
export interface ControllerFixture {
  readonly directory: string;
  readonly etcd: TestEtcd;
  readonly postgresql: TestPostgresql;
  readonly bootstrap: Readonly<Record<"username" | "password" | "api_key_id" | "api_key_secret" | "token", string>>;
  /** Settings of a controller whose files are below `root`. */
  settingsIn(root: string): Promise<Record<string, string>>;
  /** Runs a command of the command line. */
  command(args: readonly string[], variables: Record<string, string | undefined>): Promise<CommandResult>;
  /** Runs an operator's command against the controller with these settings; parses its output. Throws if it fails. */
  admin<T>(settings: Record<string, string>, ...args: string[]): Promise<T>;
  close(): Promise<void>;
}

export interface CommandResult {
  readonly code: number;
  /** Complete output of the command. */
  readonly text: string;
  /** Output without messages. */
  readonly stdout: string;
}

export async function newControllerFixture(
  installationId: string,
  nouns: readonly NounGroup[] = nounGroups,
): Promise<ControllerFixture> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-local-"));
  const [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  const bootstrap = {
    username: "admin",
    password: randomBytes(12).toString("hex"),
    api_key_id: "hfk_fixture",
    api_key_secret: randomBytes(24).toString("hex"),
    token: `hft_${randomBytes(24).toString("hex")}`,
    organization: "default",
  };

  async function settingsIn(root: string): Promise<Record<string, string>> {
    const [api, agents, dns] = await freePorts(3);
    const file = async (name: string, content: string) => {
      await writeFile(join(root, name), content, { mode: 0o600 });
      return join(root, name);
    };
    const folder = async (name: string) => {
      await mkdir(join(root, name));
      return join(root, name);
    };
    const masterKey = { current: "v1", keys: { v1: randomBytes(32).toString("base64") } };
    return {
      HOLDFAST_INSTALLATION_ID: installationId,
      HOLDFAST_CONTROLLER_ID: "controller-1",
      HOLDFAST_ETCD: etcd.url,
      HOLDFAST_HISTORY_URL: postgresql.url,
      HOLDFAST_HISTORY_PASSWORD_FILE: await file("history-password", "trusted"),
      HOLDFAST_MASTER_KEY_FILE: await file("master-key.json", JSON.stringify(masterKey)),
      HOLDFAST_OBJECTS: `file://${await folder("objects")}`,
      HOLDFAST_API_LISTEN: `127.0.0.1:${api}`,
      HOLDFAST_BASE_URL: `https://127.0.0.1:${api}`,
      HOLDFAST_AGENT_LISTEN: `127.0.0.1:${agents}`,
      HOLDFAST_DNS_IDENTITY_DIR: await folder("dns"),
      HOLDFAST_DNS_SERVERS: `127.0.0.1:${dns}`,
      HOLDFAST_PROVIDER: "none",
      HOLDFAST_IMAGES_DIR: await folder("images"),
      HOLDFAST_BOOTSTRAP_FILE: await file("bootstrap.json", JSON.stringify(bootstrap)),
      HOLDFAST_CA_FILE: join(root, "authority.pem"),
      HOLDFAST_LOG_LEVEL: "error",
    };
  }

  async function command(args: readonly string[], variables: Record<string, string | undefined>) {
    const [all, stdout]: [string[], string[]] = [[], []];
    const noAnswer = () => Promise.reject(new Error("no question is expected"));
    const code = await runCli(
      args,
      {
        environment: { HOME: directory, ...variables },
        defaultDirectory: directory,
        signal: new AbortController().signal,
        stdout: { write: (text: string) => [all, stdout].map((written) => written.push(text)) },
        stderr: { write: (text: string) => all.push(text) },
        terminal: {
          isInteractive: false,
          ask: noAnswer,
          askSecret: noAnswer,
          readAll: noAnswer,
          confirm: async () => false,
        },
      },
      nouns,
    );
    return { code, text: all.join(""), stdout: stdout.join("") };
  }

  return {
    directory,
    etcd,
    postgresql,
    bootstrap,
    settingsIn,
    command,
    async admin<T>(settings: Record<string, string>, ...args: string[]) {
      const data = await mkdtemp(join(directory, "operator-"));
      const { HOLDFAST_BASE_URL: base_url, HOLDFAST_CA_FILE: ca_file } = settings;
      const { username, password } = bootstrap;
      await writeFile(join(data, "admin.json"), JSON.stringify({ base_url, ca_file, username, password }));
      const { code, text, stdout } = await command(["admin", ...args, "--output", "json"], { HOLDFAST_DATA: data });
      if (code !== 0) throw new Error(`admin ${args.join(" ")} ended with ${code}: ${text}`);
      return (stdout === "" ? undefined : JSON.parse(stdout)) as T;
    },
    async close() {
      await Promise.all([etcd.stop(), postgresql.stop()]);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
