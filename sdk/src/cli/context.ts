import { existsSync, readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { Command } from "commander";
import { type Client, createClient } from "../client.ts";
import { NotFound } from "../errors.ts";
import type { ManagedService } from "../types.ts";
import { createOutput, type Output } from "./output.ts";
import { createProgress, type Progress } from "./progress.ts";
import { type Flags, readSettings, type Settings } from "./settings.ts";
import { UsageError } from "./exit-code.ts";

/** What commands work with. */
export interface CliDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The installation of the checkout that the command belongs to. */
  readonly defaultDirectory: string;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean };
  /** Asks on the terminal; false where there is none. */
  confirm(question: string): Promise<boolean>;
}

/** One run of a command. */
export interface Context {
  readonly settings: Settings;
  readonly client: Client;
  /** As the operator of the installation, who is a person too. */
  readonly operator: Client;
  readonly output: Output;
  readonly environment: CliDeps["environment"];
  readonly signal: AbortSignal;
  progress(name: string): Progress;
  /** By name, or by id. Throws NotFound. */
  service(nameOrId: string): Promise<ManagedService>;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Reads the global flags of the command's root; nothing is asked of the network yet. */
export function openContext(command: Command, deps: CliDeps): Context {
  const flags = command.optsWithGlobals<Flags & { output: string }>();
  const output = createOutput(flags.output, (text) => deps.stdout.write(text));
  const settings = readSettings(flags, deps.environment, deps.defaultDirectory);
  trust(settings.caFile);
  const { baseUrl, organization } = settings;
  const all = { baseUrl, signal: deps.signal, ...(organization !== undefined && { organization }) };
  const client = createClient({ ...all, credentials: settings.credentials });
  const operator = createClient({ ...all, credentials: settings.operator });
  return {
    settings,
    client,
    operator,
    output,
    environment: deps.environment,
    signal: deps.signal,
    progress: (name) => createProgress(deps.stderr, name),
    async service(nameOrId) {
      if (uuid.test(nameOrId)) return client.services.get(nameOrId, { signal: deps.signal });
      for await (const service of client.services.list({ name: nameOrId }, { signal: deps.signal })) return service;
      const detail = `there is no service ${nameOrId}`;
      throw new NotFound({
        type: "about:blank",
        title: detail,
        status: 404,
        detail,
        instance: "",
        code: "service_not_found",
        errors: [],
      });
    },
  };
}

/** Adds the installation's authority to those that fetch believes. */
function trust(caFile: string | undefined): void {
  if (caFile === undefined) return;
  if (!existsSync(caFile)) throw new UsageError(`there is no file ${caFile} with the authority to trust`);
  setDefaultCACertificates([...getCACertificates("default"), readFileSync(caFile, "utf8")]);
}
