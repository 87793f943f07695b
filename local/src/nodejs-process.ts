import { existsSync } from "node:fs";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { ChildSpec } from "./child.ts";

/** A Node program of the platform; `settings` override the operator's environment, `flags` are Node's. */
export function nodejsProcess(
  name: string,
  main: string,
  environment: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>>,
  { flags = [], graceMs = 10_000 }: { readonly flags?: readonly string[]; readonly graceMs?: number } = {},
): ChildSpec {
  // grpc-js uses etcd's IP address as TLS server name, and Node would warn about it on each start.
  const argv = [process.execPath, "--disable-warning=DEP0123", ...flags, main];
  const [command = "", ...args] = argv;
  return {
    name,
    // Only Linux can kill a process when its parent ends.
    launch: existsSync("/proc/self") ? dyingWithParent(argv) : { command, args },
    env: { ...environment, ...settings },
    ready: null,
    stopSignal: "SIGTERM",
    graceMs,
  };
}
