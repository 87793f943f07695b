import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { mongodb } from "@holdfast/cli/clients/mongodb.ts";
import type { Platform } from "../platform/platform.ts";
import type { RunningService } from "../platform/services.ts";
import { npmEnvironment } from "../servers/npm-environment.ts";
import { pythonEnvironment } from "../servers/python-environment.ts";
import { withClientFiles } from "./client-files.ts";

/** Package of the driver in Python. */
export const pymongo = "pymongo==4.20.1";
const mongosh = "mongosh@2.12.0";
const limitMs = 120_000;

/** Runs our program with pymongo, as `app_user` by the URI of the service; resolves with its output. */
export async function runPythonMongodb(platform: Platform, service: RunningService): Promise<unknown> {
  const programs = await pythonEnvironment([pymongo]);
  const { connection, password } = service;
  return withClientFiles(platform, service, async (directory) => {
    const argv = [join(programs, "python3"), join(import.meta.dirname, "mongodb_clients.py")];
    const environment = {
      MONGODB_URI: connection.uri,
      MONGODB_CA: join(directory, "ca.pem"),
      MONGODB_PASSWORD: password,
      PATH: process.env["PATH"] ?? "",
    };
    const stdout = await runWithNames(directory, argv, { environment });
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  });
}

/**
 * Runs mongosh as `services connect` starts it, with the user's `own` arguments and these lines as its input; resolves
 * with what it printed.
 */
export async function runMongosh(
  platform: Platform,
  service: RunningService,
  lines: readonly string[],
  own: readonly string[] = [],
): Promise<string> {
  const programs = await npmEnvironment(mongosh);
  const { connection, password } = service;
  return withClientFiles(platform, service, async (directory) => {
    const files = {
      write(name: string, content: string) {
        const path = join(directory, name);
        writeFileSync(path, content, { mode: 0o600 });
        return path;
      },
    };
    const { args, environment } = mongodb.session(connection, { user: connection.user, password }, files);
    const argv = [process.execPath, join(programs, "mongosh"), ...args, ...(mongodb.arguments?.(own) ?? own)];
    const input = [...lines, "exit", ""].join("\n");
    // It writes its history and its log into the home directory.
    return runWithNames(directory, argv, { environment: { ...environment, HOME: directory }, input });
  });
}

/** Runs a program with the file of names as the host's own in a mount namespace, which needs root. */
function runWithNames(
  directory: string,
  argv: readonly string[],
  { environment, input = "" }: { environment: Readonly<Record<string, string>>; input?: string },
): Promise<string> {
  const script = 'mount --bind "$0" /etc/hosts && exec "$@"';
  const launch = ["--mount", "sh", "-c", script, join(directory, "hosts"), ...argv];
  const running = promisify(execFile)("unshare", launch, { env: environment, timeout: limitMs, cwd: "/" });
  running.child.stdin?.end(input);
  return running.then(({ stdout }) => stdout);
}
