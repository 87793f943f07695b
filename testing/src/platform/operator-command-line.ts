import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestGateway } from "../api/test-gateway.ts";
import { type CommandLine, createCommandLine } from "./command-line.ts";

/** The command as an operator runs it on the platform's own machine; the gateway authenticates it as the owner. */
export function createOperatorCommandLine({ ca, baseUrl }: TestGateway): CommandLine {
  const shell = createCommandLine({});
  const caFile = join(shell.home, "ca.pem");
  writeFileSync(caFile, ca);
  const login = { username: "hfk_owner", password: "secret" };
  const key = { api_key_id: login.username, api_key_secret: login.password };
  const admin = { base_url: baseUrl, ca_file: caFile, ...login, ...key };
  writeFileSync(join(shell.home, "admin.json"), JSON.stringify(admin));
  const runHere: CommandLine["runHere"] = (args, options) =>
    shell.runHere(args, { ...options, environment: { HOLDFAST_DATA: shell.home, ...options?.environment } });
  return { ...shell, runHere };
}
