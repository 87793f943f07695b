import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pin, serverCore } from "../support/peer-process.ts";

/** Portkey's gateway with its defaults, on the core of the servers. */
export interface Portkey {
  readonly url: string;
  readonly pid: number;
  end(): void;
}

/** `caFile` has the authority of upstreams. */
export async function startPortkey(caFile: string): Promise<Portkey> {
  const main = fileURLToPath(import.meta.resolve("@portkey-ai/gateway/build/start-server.js"));
  const [port = 0] = await freePorts(1);
  const child: ChildProcess = spawn(process.execPath, [main, `--port=${port}`, "--headless"], {
    env: { ...process.env, NODE_ENV: "production", NODE_EXTRA_CA_CERTS: caFile, TRUSTED_CUSTOM_HOSTS: "127.0.0.1" },
    stdio: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntil(
    "Portkey serves",
    () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    { withinMs: 30_000 },
  );
  pin(child.pid ?? 0, serverCore);
  return { url, pid: child.pid ?? 0, end: () => void child.kill("SIGKILL") };
}
